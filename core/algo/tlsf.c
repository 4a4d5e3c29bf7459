#include "core/algo/tlsf.h"

/* Invariants: a bit of `words` is set when its bin has a free chunk, a bit of `top` when its word is not 0. A free
 * chunk is in the bin of its size, newest first. */

/* Takes the free chunks of a bin out and links them before the chain, last first. A caller that puts them back in that
 * order finds them as they were. */
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
