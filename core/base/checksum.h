/* A 64-bit checksum. It finds accidents and resists no attacker. Values are equal only within one build: gm uses XXH3
 * where it was built with xxHash, else a multiply-mix of 8-byte words. Pure and thread-safe. */
#ifndef GM_CORE_BASE_CHECKSUM_H
#define GM_CORE_BASE_CHECKSUM_H

#include <stdint.h>

/* The checksum of `length` bytes at `bytes` (NULL only for length 0). The checksum of one piece as the `seed` of the
 * next gives a checksum of all pieces. */
uint64_t gm__checksum(const void *bytes, uint64_t length, uint64_t seed);

#endif
