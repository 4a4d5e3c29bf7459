/* Batches: many sizes at once, all or nothing, with their first contents, given back as one (F17). Thread-safe. */
#ifndef GM_BATCH_H
#define GM_BATCH_H

#include "gm/copy.h"

GM_BEGIN_DECLS

typedef enum gm_batch_flags {
  GM_BATCH_GROUPED = 1 /* one block for all, each request a range of it */
} gm_batch_flags;

typedef struct gm_batch_params { /* zero-initialised but for struct_size it is an empty batch */
  uint32_t struct_size;
  uint32_t flags;             /* gm_batch_flags */
  const gm_request *requests; /* `count`; GM_INSERT_WAIT is implied. Grouped: all with the stream, usage, must_be and
                                 flags of the first, whose tag the block gets */
  size_t count;
  const void *const *contents; /* `count`; what the request's bytes are to be; NULL, here or there: nothing */
} gm_batch_params;

/* Where a request of a batch was served: `bytes` from `offset` of `block`, which is its own with offset 0, or the
 * group's. Never grows. */
typedef struct gm_part {
  gm_block block;
  uint64_t offset;
  uint64_t bytes; /* as requested */
} gm_part;

/* All or nothing. On failure every block is freed, new driver memory is released where no stream uses it, and
 * *out_failed (NULL: not wanted) is the index of the refused request, or `count` if none was. Contents are written in
 * the order of the request's stream and have arrived when the call returns. Fills `count` of `out_parts`; the caller
 * frees them. A count of 0 is GM_OK. INVALID_ARGUMENT: what gm_alloc calls INVALID, a sum over 2^64-1, an unlike member
 * of a group; OVER_LIMIT, OUT_OF_DEVICE_MEMORY and what else gm_explain says of that request; errors of gm_block_write;
 * FORKED. */
GM_API gm_status gm_alloc_batch(gm_pool *pool, const gm_batch_params *params, gm_part *out_parts, size_t *out_failed,
                                gm_error *err);

/* Give back all parts in that stream's order, as gm_free; a group as one, so all of its parts must be in one call, next
 * to each other. Goes on after a failure, and answers the first: INVALID_ARGUMENT also for a part that comes twice. */
GM_API gm_status gm_free_batch(gm_pool *pool, const gm_part *parts, size_t count, gm_stream *stream, gm_error *err);

GM_END_DECLS

#endif
