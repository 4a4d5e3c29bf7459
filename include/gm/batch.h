/* Batches allocate blocks of many sizes at once, with their first contents, and free them at once. A batch is all or
 * nothing. Every call is thread-safe. */
#ifndef GM_BATCH_H
#define GM_BATCH_H

#include "gm/copy.h"

GM_BEGIN_DECLS

typedef enum gm_batch_flags {
  GM_BATCH_GROUPED = 1 /* one block for all; each request is a range of it */
} gm_batch_flags;

typedef struct gm_batch_params { /* zero-initialised, with struct_size set, it is an empty batch */
  uint32_t struct_size;
  uint32_t flags;             /* gm_batch_flags */
  const gm_request *requests; /* `count` requests; GM_INSERT_WAIT is implied. In a group all have the stream, usage,
                                 must_be, flags and wished memory of the first. None is GM_DEDICATED. The block gets
                                 the tag of the first */
  size_t count;
  const void *const *contents; /* `count` pointers to the first bytes of each block; NULL, here or there: no contents */
} gm_batch_params;

/* The place of one request: `bytes` from `offset` of `block`. The block is the request's own, with offset 0, or the
 * group's. Never grows. */
typedef struct gm_part {
  gm_block block;
  uint64_t offset;
  uint64_t bytes; /* as the request asked */
} gm_part;

/* Allocates all requests, or none. Fills `count` entries of `out_parts`, which the caller frees. A count of 0 is GM_OK.
 * gm writes the contents in the order of each request's stream. They have arrived when the call returns.
 *
 * On failure every block is freed, and new driver memory is released where no stream uses it. *out_failed (may be NULL)
 * is then the index of the refused request, or `count` if none was refused.
 *
 * Errors: FORKED, those of gm_block_write, and for a request OVER_LIMIT, OUT_OF_DEVICE_MEMORY and whatever else
 * gm_explain gives. INVALID_ARGUMENT: gm_alloc answers INVALID, the sum is above 2^64-1, or a group has unlike members.
 */
GM_API gm_status gm_alloc_batch(gm_pool *pool, const gm_batch_params *params, gm_part *out_parts, size_t *out_failed,
                                gm_error *err);

/* Frees all parts in the order of `stream`, as gm_free does. A group is freed as one: all its parts must be in one
 * call, next to each other. The call goes on after a failure, and answers the first one. INVALID_ARGUMENT: also for a
 * part that comes twice. */
GM_API gm_status gm_free_batch(gm_pool *pool, const gm_part *parts, size_t count, gm_stream *stream, gm_error *err);

GM_END_DECLS

#endif
