#include "core/algo/tlsf.h"

/* Invariants: a bit of `words` is set when its bin has a free chunk, a bit of `top` when its word is not 0. A free
 * chunk is in the bin of its size, newest first. */

bool gm__chunk_fits(const gm__chunk *chunk, uint32_t granules, uint64_t align, uint64_t granule) {
  const uint64_t pad = gm__chunk_pad(chunk, align) / granule;
  return pad <= chunk->granules && granules <= chunk->granules - pad;
}

/* The smallest that fits among the first `most` of a bin; 0: there is none. */
static uint32_t tlsf_scan_aligned(const gm__chunks *chunks, uint32_t number, uint32_t granules, uint64_t align,
                                  uint64_t granule, uint32_t most) {
  uint32_t best = 0, least = UINT32_MAX;
  for (; number && most > 0; number = gm__chunk_at(chunks, number)->next, most--) {
    const gm__chunk *chunk = gm__chunk_at(chunks, number);
    if (!gm__chunk_fits(chunk, granules, align, granule) || (best && chunk->granules >= least)) continue;
    best = number;
    least = chunk->granules;
    if (least == granules) break;
  }
  return best;
}

uint32_t gm__tlsf_search(const gm__chunks *chunks, const gm__tlsf *tlsf, uint32_t granules, uint64_t align,
                         uint64_t granule) {
  const uint32_t own = gm__tlsf_bin(granules);
  for (int turn = 0; turn < 2; turn++) { /* the second turn looks at what the short first one did not reach */
    const uint32_t most = turn ? UINT32_MAX : GM__TLSF_SCAN;
    for (uint32_t bin = gm__tlsf_next(tlsf, own); bin < GM__TLSF_BINS; bin = gm__tlsf_next_after(tlsf, bin)) {
      const uint32_t found = tlsf_scan_aligned(chunks, tlsf->heads[bin], granules, align, granule, most);
      if (found) return found;
    }
  }
  return 0;
}

/* Takes the free chunks of a bin out and links them before the chain, last first. Who puts them back in that order
 * finds them as they were. */
static uint32_t tlsf_drain_bin(gm__chunks *chunks, gm__tlsf *tlsf, uint32_t bin, uint32_t chain) {
  for (uint32_t number = tlsf->heads[bin], next; number; number = next) {
    next = gm__chunk_at(chunks, number)->next;
    gm__chunk_at(chunks, number)->next = chain;
    chain = number;
  }
  tlsf->heads[bin] = 0;
  tlsf->words[bin / 64] &= ~(UINT64_C(1) << bin % 64);
  return chain;
}

uint32_t gm__tlsf_drain(gm__chunks *chunks, gm__tlsf *tlsf) {
  uint32_t chain = 0;
  for (uint32_t bin = gm__tlsf_next(tlsf, 0); bin < GM__TLSF_BINS; bin = gm__tlsf_next_after(tlsf, bin)) {
    chain = tlsf_drain_bin(chunks, tlsf, bin, chain);
  }
  tlsf->top = 0;
  return chain;
}
