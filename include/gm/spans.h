/* Blocks of several memories (F72). A request with GM_ALLOW_SPANS that cannot be had in one piece (larger than the
 * device's largest allocation, or nothing free is as large) is served by several, which count as blocks in statistics,
 * limits, tracking and recordings. The block has `address` 0. gm_block_write, gm_block_read, gm_block_copy,
 * gm_block_fill, the calls of gm/buffer.h, gm_use_on, gm_free and gm_free_batch take it as any other; what is for one
 * memory (gm_block_map, gm_block_native, gm_block_view_create, gm_block_memory, gm_block_export, gm_block_copy_peer)
 * answers NOT_SUPPORTED, and takes each of its memories. Thread-safe. */
#ifndef GM_SPANS_H
#define GM_SPANS_H

#include "gm/pool.h"

GM_BEGIN_DECLS

#define GM_BLOCK_SPANS_MOST 64u /* memories of one block */

/* One memory of a block. Never grows. */
typedef struct gm_block_span {
  gm_block block;  /* names the memory in each call that takes a block; it is the whole that is freed, though: gm_free
                      of one of several is INVALID_ARGUMENT */
  uint64_t offset; /* in the whole, of its first byte: a multiple of the request's alignment and of the device's */
  uint64_t bytes;  /* of the whole that are in it, from its first byte on */
} gm_block_span;

/* Where a live block lies, in rising order of `offset`, without gaps: from the memory numbered `first` on at most
 * `capacity`, into `out` (NULL with 0: none are wanted); *out_count is how many the block has in all, 1 where it is in
 * one piece: then that is the block itself. Valid until the block is freed. INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_block_spans(gm_pool *pool, const gm_block *block, uint32_t first, uint32_t capacity,
                                gm_block_span *out, uint32_t *out_count, gm_error *err);

GM_END_DECLS

#endif
