/* Blocks of several memories. A request with GM_ALLOW_SPANS may be larger than the device's largest allocation, or than
 * any free memory in one piece. gm then serves it with several memories. Each counts as a block in statistics, limits,
 * tracking and recordings. The whole block has `address` 0.
 *
 * These calls take such a block as any other: gm_block_write, gm_block_read, gm_block_copy, gm_block_fill, gm_use_on,
 * gm_free, gm_free_batch, and those of gm/buffer.h. These calls need one memory: gm_block_map, gm_block_native,
 * gm_block_view_create, gm_block_memory, gm_block_export, gm_block_copy_peer. They answer NOT_SUPPORTED for the whole
 * block, and take each of its memories. Every call is thread-safe. */
#ifndef GM_SPANS_H
#define GM_SPANS_H

#include "gm/pool.h"

GM_BEGIN_DECLS

#define GM_BLOCK_SPANS_MOST 64u /* most memories of one block */

/* One memory of a block. Never grows. */
typedef struct gm_block_span {
  gm_block block;  /* names the memory in each call that takes a block. Only the whole block is freed: gm_free of one
                      of several memories is INVALID_ARGUMENT */
  uint64_t offset; /* of its first byte in the whole block: a multiple of the request's alignment and of the device's */
  uint64_t bytes;  /* bytes of the whole block that are in it, from its first byte on */
} gm_block_span;

/* Returns the memories of a live block, in rising order of `offset`, without gaps. It begins with memory number
 * `first`, and writes at most `capacity` entries into `out`. `out` may be NULL when `capacity` is 0. *out_count is the
 * number of memories of the block. A block in one piece has 1, which is the block itself. The answer is valid until the
 * block is freed. Errors: INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_block_spans(gm_pool *pool, const gm_block *block, uint32_t first, uint32_t capacity,
                                gm_block_span *out, uint32_t *out_count, gm_error *err);

GM_END_DECLS

#endif
