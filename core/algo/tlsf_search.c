#include "core/algo/tlsf_search.h"

bool gm__tlsf_serves(const gm__tlsf_wish *wish, const gm__chunk *chunk) {
  const uint64_t pad = gm__chunk_pad(chunk, wish->align) / wish->granule;
  return pad <= chunk->granules && wish->granules <= chunk->granules - pad &&
         (!wish->suits || wish->suits(wish, chunk));
}

/* The smallest that serves among the first `most` of a bin; 0: there is none. */
static uint32_t tlsf_scan_wish(const gm__chunks *chunks, uint32_t number, const gm__tlsf_wish *wish, uint32_t most) {
  uint32_t best = 0, least = UINT32_MAX;
  for (; number && most > 0; number = gm__chunk_at(chunks, number)->next, most--) {
    const gm__chunk *chunk = gm__chunk_at(chunks, number);
    if (!gm__tlsf_serves(wish, chunk) || (best && chunk->granules >= least)) continue;
    best = number;
    least = chunk->granules;
    if (least == wish->granules) break;
  }
  return best;
}

uint32_t gm__tlsf_search(const gm__chunks *chunks, const gm__tlsf *tlsf, const gm__tlsf_wish *wish) {
  const uint32_t own = gm__tlsf_bin(wish->granules);
  for (int turn = 0; turn < 2; turn++) { /* the second turn looks at what the short first one did not reach */
    const uint32_t most = turn ? UINT32_MAX : GM__TLSF_SCAN;
    for (uint32_t bin = gm__tlsf_next(tlsf, own); bin < GM__TLSF_BINS; bin = gm__tlsf_next_after(tlsf, bin)) {
      const uint32_t found = tlsf_scan_wish(chunks, tlsf->heads[bin], wish, most);
      if (found) return found;
    }
  }
  return 0;
}

uint32_t gm__tlsf_last(const gm__tlsf *tlsf, uint32_t bin) {
  uint32_t word = bin / 64;
  uint64_t bits = tlsf->words[word] & (UINT64_MAX >> (63 - bin % 64));
  if (!bits) {
    const uint32_t words = tlsf->top & ((UINT32_C(1) << word) - 1);
    if (!words) return GM__TLSF_BINS;
    word = 31u - (uint32_t)__builtin_clz(words);
    bits = tlsf->words[word];
  }
  return word * 64 + 63 - (uint32_t)__builtin_clzll(bits);
}
