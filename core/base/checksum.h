/* A 64-bit checksum. It finds accidents and resists no attacker. gm uses XXH3 where it was built for xxHash and finds
 * the library (GM_XXHASH_LIBRARY names another file), else a multiply-mix of 8-byte words. Within a process all values
 * are of one kind. Pure and thread-safe. */
#ifndef GM_CORE_BASE_CHECKSUM_H
#define GM_CORE_BASE_CHECKSUM_H

#include <stdint.h>

#include "core/base/inner.h"

/* The checksum of `length` bytes at `bytes` (NULL only for length 0). The checksum of one piece as the `seed` of the
 * next gives a checksum of all pieces. */
GM__INNER uint64_t gm__checksum(const void *bytes, uint64_t length, uint64_t seed);

/* The kind of checksum that this process makes. The numbers never change: files hold them. */
typedef enum gm__checksum_kind { GM__CHECKSUM_XXH3 = 1, GM__CHECKSUM_MIX = 2 } gm__checksum_kind;
GM__INNER gm__checksum_kind gm__checksum_kind_here(void);

#endif
