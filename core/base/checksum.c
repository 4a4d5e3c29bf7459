#include "core/base/checksum.h"

#include <string.h>

/* Invariant: for a given word, each step is a bijection of the state. So two inputs of one length that differ in one
 * word never collide. The multiplier is 2^64 divided by the golden ratio, made odd. */
static uint64_t checksum_mix(uint64_t state, uint64_t word) {
  state = (state ^ word) * UINT64_C(0x9e3779b97f4a7c15);
  return state ^ state >> 29;
}

static uint64_t checksum_by_words(const void *bytes, uint64_t length, uint64_t seed) {
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

#ifdef GM_HAVE_XXHASH

#include "core/base/optional.h"

typedef uint64_t checksum_xxh3(const void *bytes, size_t length, uint64_t seed);

typedef struct checksum_xxhash {
  checksum_xxh3 *plain, *widest; /* by the widest vectors of this processor; not every libxxhash has it: NULL then */
} checksum_xxhash;

static checksum_xxhash checksum_calls;
static void checksum_load(void);
static const gm__symbol checksum_symbols[] = {
    {"XXH3_64bits_withSeed", offsetof(checksum_xxhash, plain), true},
    {"XXH3_64bits_withSeed_dispatch", offsetof(checksum_xxhash, widest), false}};
static gm__optional checksum_library =
    GM__OPTIONAL("xxhash", "libxxhash.so.0", "GM_XXHASH_LIBRARY", "install libxxhash 0.8 or newer", checksum_symbols,
                 &checksum_calls, checksum_load);

static void checksum_load(void) { gm__optional_load(&checksum_library); }

static checksum_xxh3 *checksum_xxh3_here(void) {
  const checksum_xxhash *calls = gm__optional_open(&checksum_library, NULL);
  return !calls ? NULL : calls->widest ? calls->widest : calls->plain;
}

uint64_t gm__checksum(const void *bytes, uint64_t length, uint64_t seed) {
  checksum_xxh3 *const xxh3 = checksum_xxh3_here();
  return xxh3 ? xxh3(length ? bytes : "", length, seed) : checksum_by_words(bytes, length, seed);
}

gm__checksum_kind gm__checksum_kind_here(void) { return checksum_xxh3_here() ? GM__CHECKSUM_XXH3 : GM__CHECKSUM_MIX; }

#else

uint64_t gm__checksum(const void *bytes, uint64_t length, uint64_t seed) {
  return checksum_by_words(bytes, length, seed);
}

gm__checksum_kind gm__checksum_kind_here(void) { return GM__CHECKSUM_MIX; }

#endif
