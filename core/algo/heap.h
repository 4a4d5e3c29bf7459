/* Holes of memory, binned by size: near-best-fit search, cutting and joining. Pure: no lock, no device, no allocation.
 * What every allocation goes through is inline. Externally synchronised. */
#ifndef GM_CORE_ALGO_HEAP_H
#define GM_CORE_ALGO_HEAP_H

#include "core/algo/span.h"

enum {
  GM__HEAP_SUB_BITS = 6,
  GM__HEAP_SUB_BINS = 1 << GM__HEAP_SUB_BITS, /* between two powers of two */
  GM__HEAP_BINS = (33 - GM__HEAP_SUB_BITS) * GM__HEAP_SUB_BINS,
  GM__HEAP_WORDS = (GM__HEAP_BINS + 63) / 64,
  GM__HEAP_SCAN = 8 /* holes looked at in the request's own bin: fewer cost packing, more cost time */
};

/* Holes that are searched together; zero-initialised there are none. */
typedef struct gm__heap {
  uint64_t words[GM__HEAP_WORDS];
  uint32_t top; /* words that are not 0 */
  uint32_t heads[GM__HEAP_BINS];
} gm__heap;

/* The bin of a size: 2^k * (1 + i / GM__HEAP_SUB_BINS); below GM__HEAP_SUB_BINS its own. No branch: sizes that come are
 * hard to foretell. */
static inline uint32_t gm__heap_bin(uint32_t granules) {
  const uint32_t down = 31u - GM__HEAP_SUB_BITS - (uint32_t)__builtin_clz(granules | GM__HEAP_SUB_BINS);
  return (down << GM__HEAP_SUB_BITS) + (granules >> down);
}

/* The span becomes a hole of the heap. (A neighbour 0 is written to, and never read.) */
static inline void gm__heap_put(gm__spans *spans, gm__heap *heap, uint32_t number) {
  gm__span *span = gm__span_at(spans, number);
  const uint32_t bin = gm__heap_bin(span->granules), head = heap->heads[bin];
  span->bin = (uint16_t)bin;
  span->prev = 0;
  span->next = head;
  gm__span_at(spans, head)->prev = number;
  heap->heads[bin] = number;
  heap->words[bin / 64] |= UINT64_C(1) << bin % 64;
  heap->top |= UINT32_C(1) << bin / 64;
}

static inline void gm__heap_take(gm__spans *spans, gm__heap *heap, uint32_t number) {
  const gm__span *span = gm__span_at(spans, number);
  const uint32_t bin = span->bin, prev = span->prev, next = span->next;
  gm__span_at(spans, next)->prev = prev;
  gm__span_at(spans, prev)->next = next;
  if (prev) return;
  heap->heads[bin] = next;
  if (next) return;
  heap->words[bin / 64] &= ~(UINT64_C(1) << bin % 64);
  if (!heap->words[bin / 64]) heap->top &= ~(UINT32_C(1) << bin / 64);
}

/* A hole of the heap has another size. */
static inline __attribute__((always_inline)) void gm__heap_resize(gm__spans *spans, gm__heap *heap, uint32_t number,
                                                                  uint32_t granules) {
  gm__span *span = gm__span_at(spans, number);
  if (gm__heap_bin(granules) == span->bin) {
    span->granules = granules;
    return;
  }
  gm__heap_take(spans, heap, number);
  span->granules = granules;
  gm__heap_put(spans, heap, number);
}

/* The first bin after `bin` that is not empty; GM__HEAP_BINS if there is none. */
static inline uint32_t gm__heap_next_after(const gm__heap *heap, uint32_t bin) {
  uint32_t word = bin / 64;
  uint64_t bits = heap->words[word] & (UINT64_MAX << bin % 64 << 1);
  if (!bits) {
    const uint32_t words = heap->top & (UINT32_MAX << word << 1);
    if (!words) return GM__HEAP_BINS;
    word = (uint32_t)__builtin_ctz(words);
    bits = heap->words[word];
  }
  return word * 64 + (uint32_t)__builtin_ctzll(bits);
}

/* The same from `bin` on. */
static inline uint32_t gm__heap_next(const gm__heap *heap, uint32_t bin) {
  return heap->heads[bin] ? bin : gm__heap_next_after(heap, bin);
}

/* The smallest that fits among the first few of a bin; 0: none. */
static inline uint32_t gm__heap_scan(const gm__spans *spans, const gm__heap *heap, uint32_t bin, uint32_t granules) {
  uint32_t best = 0, number = heap->heads[bin];
  uint32_t least = 0 - granules; /* more than any waste; what is too small wastes more than that, in 32 bits */
  for (int i = 0; i < GM__HEAP_SCAN && number; i++) {
    const gm__span *span = gm__span_at(spans, number);
    const uint32_t waste = span->granules - granules;
    if (!waste) return number;
    if (waste < least) {
      least = waste;
      best = number;
    }
    number = span->next;
  }
  return best;
}

/* A hole of at least so many granules (> 0), close to the smallest; 0 when none was found, which does not mean that
 * there is none: gm__heap_search knows. */
static inline __attribute__((always_inline)) uint32_t gm__heap_find(const gm__spans *spans, const gm__heap *heap,
                                                                    uint32_t granules) {
  uint32_t bin = gm__heap_next(heap, gm__heap_bin(granules));
  if (bin == GM__HEAP_BINS) return 0;
  const uint32_t found = gm__heap_scan(spans, heap, bin, granules);
  if (found) return found;
  bin = gm__heap_next_after(heap, bin);
  return bin == GM__HEAP_BINS ? 0 : gm__heap_scan(spans, heap, bin, granules);
}

/* The first granules (less than all) of a hole become a span of their own, which is no hole; the rest stays the hole it
 * is. The number was taken before. */
static inline __attribute__((always_inline)) void gm__heap_cut(gm__spans *spans, gm__heap *heap, uint32_t hole,
                                                               uint32_t granules, uint64_t bytes, uint32_t front) {
  gm__span *rest = gm__span_at(spans, hole), *span = gm__span_at(spans, front);
  span->address = rest->address;
  span->seq = rest->seq;
  span->granules = granules;
  span->home = rest->home;
  span->lane = rest->lane;
  span->state = GM__SPAN_AWAY;
  gm__span_insert(spans, rest->left, front, hole);
  rest->address += bytes;
  gm__heap_resize(spans, heap, hole, rest->granules - granules);
}

/* Bytes to skip at the begin of the span to be aligned (a power of two). */
static inline uint64_t gm__span_pad(const gm__span *span, uint64_t align) { return (0 - span->address) & (align - 1); }

/* True when so many granules of `granule` bytes fit at that alignment, which is no less than a granule. */
bool gm__span_fits(const gm__span *span, uint32_t granules, uint64_t align, uint64_t granule);

/* Like gm__heap_find, for any alignment, and sure: 0 only when there is none. A bounded number of steps, but for a
 * search that ends in a bin that has to be looked at as a whole. */
uint32_t gm__heap_search(const gm__spans *spans, const gm__heap *heap, uint32_t granules, uint64_t align,
                         uint64_t granule);

/* All holes, taken out and linked by `next`; 0 when there are none. */
uint32_t gm__heap_drain(gm__spans *spans, gm__heap *heap);

#endif
