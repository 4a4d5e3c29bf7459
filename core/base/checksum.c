#include "core/base/checksum.h"

#ifdef GM_HAVE_XXHASH

#include <xxhash.h>

/* XXH3 by the widest vectors of this processor. Not every libxxhash has it: NULL then. */
extern XXH64_hash_t XXH3_64bits_withSeed_dispatch(const void *bytes, size_t length, XXH64_hash_t seed)
    __attribute__((weak));

uint64_t gm__checksum(const void *bytes, uint64_t length, uint64_t seed) {
  const void *at = length ? bytes : "";
  if (XXH3_64bits_withSeed_dispatch) return XXH3_64bits_withSeed_dispatch(at, length, seed);
  return XXH3_64bits_withSeed(at, length, seed);
}

gm__checksum_kind gm__checksum_kind_here(void) { return GM__CHECKSUM_XXH3; }

#else

#include <string.h>

/* Invariant: for a given word, each step is a bijection of the state. So two inputs of one length that differ in one
 * word never collide. The multiplier is 2^64 divided by the golden ratio, made odd. */
static uint64_t checksum_mix(uint64_t state, uint64_t word) {
  state = (state ^ word) * UINT64_C(0x9e3779b97f4a7c15);
  return state ^ state >> 29;
}

uint64_t gm__checksum(const void *bytes, uint64_t length, uint64_t seed) {
  const unsigned char *at = bytes;
  uint64_t state = checksum_mix(seed, length), left = length, word = 0;
  for (; left >= sizeof word; left -= sizeof word, at += sizeof word) {
    memcpy(&word, at, sizeof word);
    state = checksum_mix(state, word);
  }
  word = 0;
  if (left) memcpy(&word, at, left);
  return checksum_mix(checksum_mix(state, word), length);
}

gm__checksum_kind gm__checksum_kind_here(void) { return GM__CHECKSUM_MIX; }

#endif
