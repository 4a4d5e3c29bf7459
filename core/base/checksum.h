/* A 64-bit checksum: finds accidents, resists no attacker. Equal within one build only: it is XXH3 where gm was built
 * with xxHash, and a multiply-mix of 8-byte words where not. Pure and thread-safe. */
#ifndef GM_CORE_BASE_CHECKSUM_H
#define GM_CORE_BASE_CHECKSUM_H

#include <stdint.h>

/* Of `length` bytes at `bytes` (NULL only when length is 0). A checksum as `seed` chains: that of many pieces. */
uint64_t gm__checksum(const void *bytes, uint64_t length, uint64_t seed);

#endif
