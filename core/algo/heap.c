#include "core/algo/heap.h"

/* Invariants: a bit of `words` is set when its bin has a hole, a bit of `top` when its word is not 0; a hole is in the
 * bin of its size, newest first. */

bool gm__span_fits(const gm__span *span, uint32_t granules, uint64_t align, uint64_t granule) {
  const uint64_t pad = gm__span_pad(span, align) / granule;
  return pad <= span->granules && granules <= span->granules - pad;
}

/* The smallest that fits among the first `most` of a bin; 0: none. */
static uint32_t heap_scan_aligned(const gm__spans *spans, uint32_t number, uint32_t granules, uint64_t align,
                                  uint64_t granule, uint32_t most) {
  uint32_t best = 0, least = UINT32_MAX;
  for (; number && most > 0; number = gm__span_at(spans, number)->next, most--) {
    const gm__span *span = gm__span_at(spans, number);
    if (!gm__span_fits(span, granules, align, granule) || (best && span->granules >= least)) continue;
    best = number;
    least = span->granules;
    if (least == granules) break;
  }
  return best;
}

uint32_t gm__heap_search(const gm__spans *spans, const gm__heap *heap, uint32_t granules, uint64_t align,
                         uint64_t granule) {
  const uint32_t own = gm__heap_bin(granules);
  for (int turn = 0; turn < 2; turn++) { /* before the answer is none: what short looks did not reach */
    const uint32_t most = turn ? UINT32_MAX : GM__HEAP_SCAN;
    for (uint32_t bin = gm__heap_next(heap, own); bin < GM__HEAP_BINS; bin = gm__heap_next_after(heap, bin)) {
      const uint32_t found = heap_scan_aligned(spans, heap->heads[bin], granules, align, granule, most);
      if (found) return found;
    }
  }
  return 0;
}

/* The holes of a bin, taken out and before the chain, the last first: who puts them back in that order finds them as
 * they were. */
static uint32_t heap_drain_bin(gm__spans *spans, gm__heap *heap, uint32_t bin, uint32_t chain) {
  for (uint32_t number = heap->heads[bin], next; number; number = next) {
    next = gm__span_at(spans, number)->next;
    gm__span_at(spans, number)->next = chain;
    chain = number;
  }
  heap->heads[bin] = 0;
  heap->words[bin / 64] &= ~(UINT64_C(1) << bin % 64);
  return chain;
}

uint32_t gm__heap_drain(gm__spans *spans, gm__heap *heap) {
  uint32_t chain = 0;
  for (uint32_t bin = gm__heap_next(heap, 0); bin < GM__HEAP_BINS; bin = gm__heap_next_after(heap, bin)) {
    chain = heap_drain_bin(spans, heap, bin, chain);
  }
  heap->top = 0;
  return chain;
}
