#include "core/pool/spare.h"

#include <stdbool.h>
#include <stddef.h>

#include "core/algo/heap.h"

/* Invariants. A bin's list has the handles of the sizes that gm__heap_bin puts together, the last that came first; a
 * bit of `words` is set when its bin has one. Below 2 * GM__HEAP_SUB_BINS pages a bin is one size, and its first handle
 * is the answer; handles that are larger are few, and their bins are looked at as a whole. */

static uint32_t spare_bin(uint32_t pages) {
  const uint32_t bin = gm__heap_bin(pages);
  return bin < GM__SPARE_BINS ? bin : GM__SPARE_BINS - 1;
}

/* The first bin from `bin` on that is not empty; GM__SPARE_BINS: none. */
static uint32_t spare_next(const gm__spare *spare, uint32_t bin) {
  for (uint32_t word = bin / 64; word < GM__SPARE_WORDS; word++) {
    const uint64_t behind = word == bin / 64 ? UINT64_MAX << bin % 64 : UINT64_MAX;
    const uint64_t bits = spare->words[word] & behind;
    if (bits) return word * 64 + (uint32_t)__builtin_ctzll(bits);
  }
  return GM__SPARE_BINS;
}

/* The last one before `bin`. */
static uint32_t spare_last(const gm__spare *spare, uint32_t bin) {
  for (uint32_t word = bin / 64 + 1; word-- > 0;) {
    const uint64_t before = word == bin / 64 ? (UINT64_C(1) << bin % 64) - 1 : UINT64_MAX;
    const uint64_t bits = spare->words[word] & before;
    if (bits) return word * 64 + 63 - (uint32_t)__builtin_clzll(bits);
  }
  return GM__SPARE_BINS;
}

/* Is one handle better than the other for so many pages? */
static bool spare_is_better(const gm__handle *one, const gm__handle *other, uint32_t most) {
  if (one->pages <= most) return other->pages > most || one->pages > other->pages;
  return other->pages > one->pages;
}

/* Where in the bin's list its best is named; NULL: none is within reach. */
static uint32_t *spare_best(gm__spare *spare, gm__handle *handles, uint32_t bin, uint32_t most, uint32_t reach) {
  uint32_t *best = NULL;
  if (bin == GM__SPARE_BINS) return NULL;
  for (uint32_t *at = &spare->heads[bin]; *at; at = &handles[*at].next) {
    const bool reached = handles[*at].pages <= reach;
    if (reached && (!best || spare_is_better(&handles[*at], &handles[*best], most))) best = at;
    if (bin < 2 * GM__HEAP_SUB_BINS) break;
  }
  return best;
}

void gm__spare_put(gm__spare *spare, gm__handle *handles, uint32_t number) {
  const uint32_t bin = spare_bin(handles[number].pages);
  handles[number].next = spare->heads[bin];
  spare->heads[bin] = number;
  spare->words[bin / 64] |= UINT64_C(1) << bin % 64;
}

uint32_t gm__spare_take(gm__spare *spare, gm__handle *handles, uint32_t most, uint32_t reach) {
  uint32_t bin = spare_bin(most);
  uint32_t *best = spare_best(spare, handles, bin, most, reach);
  if (!best || handles[*best].pages > most) {
    uint32_t *less = spare_best(spare, handles, spare_last(spare, bin), most, reach);
    if (less) best = less;
  }
  if (!best) best = spare_best(spare, handles, spare_next(spare, bin + 1), most, reach);
  if (!best) return 0;
  const uint32_t number = *best;
  bin = spare_bin(handles[number].pages);
  *best = handles[number].next;
  if (!spare->heads[bin]) spare->words[bin / 64] &= ~(UINT64_C(1) << bin % 64);
  return number;
}
