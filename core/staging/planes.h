/* The lossless codec: numbers of 16 bits in two planes, of which zstd packs one. Pure and thread-safe.
 *
 * A piece is a head and chunks of 256 KiB of plain bytes, the last one shorter. All numbers are little-endian.
 *
 *   head   0  8  "gmplanes"
 *          8  4  version, 1
 *         12  4  kind of checksum (core/base/checksum.h)
 *         16  8  plain bytes of all chunks
 *   chunk  0  4  bytes that follow its head
 *          4  4  0: they are the plain bytes. 1: the lower plane, then the upper plane, packed
 *          8  8  checksum of the two numbers above and of those bytes, with the chunk's place in the plain bytes as
 * seed
 *
 * Each number turns left by one bit, so that the sign is its lowest and the exponent of bf16 its upper byte. The upper
 * bytes are the upper plane, which zstd packs without a search for repetitions. A chunk that gains less than 3 % stays
 * as it is, one of an odd number of bytes, too. */
#ifndef GM_CORE_STAGING_PLANES_H
#define GM_CORE_STAGING_PLANES_H

#include <stdint.h>

#include "gm/status.h"

enum { GM__PLANES_CHUNK = 256 << 10 };

/* The hooks of a gm_codec. `user` is not used. */
uint64_t gm__planes_most(void *user, uint64_t bytes);
gm_status gm__planes_encode(void *user, const void *from, uint64_t bytes, void *to, uint64_t capacity,
                            uint64_t *out_bytes, gm_error *err);
gm_status gm__planes_decode(void *user, const void *from, uint64_t bytes, void *to, uint64_t capacity,
                            uint64_t *out_bytes, gm_error *err);

#endif
