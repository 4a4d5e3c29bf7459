/* Warm-up: a pool takes memory before it is needed, so that later requests find it there (F16). The keys `pre_allocate`
 * with `pre_allocate_sizes`, and `warmup_enabled` with `warmup`, do the same when a pool is created; what was not had
 * then is logged, and the pool is created. Thread-safe. */
#ifndef GM_WARM_UP_H
#define GM_WARM_UP_H

#include "gm/pool.h"

GM_BEGIN_DECLS

/* Blocks to take. Never grows. */
typedef struct gm_warm_up { /* `count` blocks of `bytes` */
  uint64_t bytes;
  uint64_t count; /* 0: none */
} gm_warm_up;

typedef struct gm_warm_up_result {
  uint32_t struct_size;  /* set by the caller: sizeof(gm_warm_up_result) */
  uint64_t wanted;       /* blocks asked for */
  uint64_t blocks;       /* of these, taken and given to the pool */
  uint64_t bytes;        /* usable bytes of those */
  uint64_t failed_bytes; /* size of the first that was not had; 0: all were */
} gm_warm_up_result;

/* Take all that is listed at once, then give it back to the pool in the order of `stream` (NULL: the host's): until the
 * next trim, requests for as much at once need no driver call; on mapped pages, other threads remap these idle
 * pages instead of allocating. A pool of buckets keeps from then on as many blocks in a
 * bucket as the fullest was given here. Stops at the first that is not to be had; what was taken stays in the pool, and
 * `out` (NULL: not wanted) says how much that is. OVER_LIMIT, OUT_OF_DEVICE_MEMORY and what else gm_explain says of
 * that request; INVALID_ARGUMENT: a size of 0, more than 2^64-1 blocks, a struct_size that gm does not know; FORKED;
 * OUT_OF_HOST_MEMORY. */
GM_API gm_status gm_pool_warm_up(gm_pool *pool, const gm_warm_up *list, size_t count, gm_stream *stream,
                                 gm_warm_up_result *out, gm_error *err);

/* The same for what a recorded trace had live at once: per power of two for a pool of buckets, else its peak in one
 * piece, or in pieces of the driver's largest allocation. Also the errors of gm_trace_profile_read. */
GM_API gm_status gm_pool_warm_up_from_trace(gm_pool *pool, const char *path, gm_stream *stream, gm_warm_up_result *out,
                                            gm_error *err);

GM_END_DECLS

#endif
