#include "core/algo/heap.h"

/* Invariants: a bit of `words` is set when its bin has a hole, a bit of `top` when its word is not 0; a hole is in the
 * bin of its size, newest first; left and right neighbours touch. */

enum { HEAP_SCAN = 8 }; /* entries looked at in a bin: fewer cost packing, more cost time */

uint32_t gm__heap_bin(uint64_t bytes) {
  if (bytes < GM__HEAP_SUB_BINS) return (uint32_t)bytes;
  uint32_t power = 63u - (uint32_t)__builtin_clzll(bytes);
  return (power - 3) * GM__HEAP_SUB_BINS + (uint32_t)(bytes >> (power - 4) & (GM__HEAP_SUB_BINS - 1));
}

void gm__heap_put(gm__heap *heap, gm__span *span, uint32_t group) {
  gm__heap_bins *bins = heap->groups[group];
  uint32_t bin = gm__heap_bin(span->bytes);
  gm__span *head = bins->heads[bin];
  span->bin = (uint16_t)bin;
  span->group = (uint8_t)group;
  span->hole = true;
  span->prev = NULL;
  span->next = head;
  if (head) head->prev = span;
  bins->heads[bin] = span;
  bins->words[bin / 64] |= UINT64_C(1) << bin % 64;
  bins->top |= UINT64_C(1) << bin / 64;
}

void gm__heap_take(gm__heap *heap, gm__span *span) {
  gm__heap_bins *bins = heap->groups[span->group];
  uint32_t bin = span->bin;
  span->hole = false;
  if (span->next) span->next->prev = span->prev;
  if (span->prev) {
    span->prev->next = span->next;
    return;
  }
  bins->heads[bin] = span->next;
  if (span->next) return;
  bins->words[bin / 64] &= ~(UINT64_C(1) << bin % 64);
  if (!bins->words[bin / 64]) bins->top &= ~(UINT64_C(1) << bin / 64);
}

uint64_t gm__span_pad(const gm__span *span, uint64_t align) { return (0 - span->address) & (align - 1); }

bool gm__span_fits(const gm__span *span, uint64_t bytes, uint64_t align) {
  uint64_t pad = gm__span_pad(span, align);
  return pad <= span->bytes && bytes <= span->bytes - pad;
}

/* The smallest that fits among the first `most` of a bin. */
static gm__span *heap_scan(const gm__heap_bins *bins, uint32_t bin, uint64_t bytes, uint64_t align, uint32_t most) {
  gm__span *best = NULL;
  for (gm__span *span = bins->heads[bin]; span && most > 0; span = span->next, most--) {
    if (!gm__span_fits(span, bytes, align) || (best && span->bytes >= best->bytes)) continue;
    best = span;
    if (span->bytes == bytes) break;
  }
  return best;
}

/* The first bin from `bin` on that is not empty; GM__HEAP_BINS if there is none. */
static uint32_t heap_next(const gm__heap_bins *bins, uint32_t bin) {
  uint32_t word = bin / 64;
  if (bin >= GM__HEAP_BINS) return GM__HEAP_BINS;
  uint64_t bits = bins->words[word] & (UINT64_MAX << bin % 64);
  if (!bits) {
    uint64_t words = word < 63 ? bins->top & (UINT64_MAX << (word + 1)) : 0;
    if (!words) return GM__HEAP_BINS;
    word = (uint32_t)__builtin_ctzll(words);
    bits = bins->words[word];
  }
  return word * 64 + (uint32_t)__builtin_ctzll(bits);
}

gm__span *gm__heap_find(const gm__heap *heap, uint32_t group, uint64_t bytes, uint64_t align) {
  const gm__heap_bins *bins = heap->groups[group];
  if (!bins || !bins->top) return NULL;
  uint32_t own = gm__heap_bin(bytes);
  for (uint32_t bin = heap_next(bins, own); bin < GM__HEAP_BINS; bin = heap_next(bins, bin + 1)) {
    gm__span *span = heap_scan(bins, bin, bytes, align, HEAP_SCAN);
    if (span) return span;
  }
  /* Before the answer is none: what the short looks above did not reach. */
  for (uint32_t bin = heap_next(bins, own); bin < GM__HEAP_BINS; bin = heap_next(bins, bin + 1)) {
    gm__span *span = heap_scan(bins, bin, bytes, align, UINT32_MAX);
    if (span) return span;
  }
  return NULL;
}

void gm__heap_cut(gm__heap *heap, gm__span *hole, uint64_t bytes, gm__span *front) {
  uint64_t rest = hole->bytes - bytes;
  bool stays = gm__heap_bin(rest) == hole->bin;
  uint32_t group = hole->group;
  if (!stays) gm__heap_take(heap, hole);
  front->address = hole->address;
  front->bytes = bytes;
  front->left = hole->left;
  front->right = hole;
  front->hole = false;
  if (hole->left) hole->left->right = front;
  hole->left = front;
  hole->address += bytes;
  hole->bytes = rest;
  if (!stays) gm__heap_put(heap, hole, group);
}

void gm__span_join(gm__span *left) {
  gm__span *right = left->right;
  left->bytes += right->bytes;
  left->right = right->right;
  if (right->right) right->right->left = left;
}

gm__span *gm__heap_drain(gm__heap *heap, uint32_t group) {
  gm__heap_bins *bins = heap->groups[group];
  gm__span *chain = NULL;
  while (bins && bins->top) {
    uint32_t bin = heap_next(bins, 0);
    gm__span *span = bins->heads[bin];
    gm__heap_take(heap, span);
    span->next = chain;
    chain = span;
  }
  return chain;
}
