/* Warm-up: a pool takes memory before it is needed, so that later requests find it there. Two pairs of keys do this
 * when a pool is created: `pre_allocate` with `pre_allocate_sizes`, and `warmup_enabled` with `warmup`. Memory that is
 * then missing is logged, and the pool is created. Every call is thread-safe. */
#ifndef GM_WARM_UP_H
#define GM_WARM_UP_H

#include "gm/pool.h"

GM_BEGIN_DECLS

/* Blocks to take: `count` blocks of `bytes`. Never grows. */
typedef struct gm_warm_up {
  uint64_t bytes;
  uint64_t count; /* 0: none */
} gm_warm_up;

typedef struct gm_warm_up_result {
  uint32_t struct_size;  /* set by the caller: sizeof(gm_warm_up_result) */
  uint64_t wanted;       /* blocks asked for */
  uint64_t blocks;       /* blocks that were taken and given to the pool */
  uint64_t bytes;        /* usable bytes of those blocks */
  uint64_t failed_bytes; /* size of the first block that was not available; 0: all were */
} gm_warm_up_result;

/* Takes all blocks of the list at once, and then gives them back to the pool in the order of `stream`. NULL means host
 * order. Until the next trim, requests for as much at once need no driver call. On mapped pages, other threads remap
 * these idle pages instead of allocating. A pool of buckets keeps from then on as many blocks in each bucket as the
 * fullest one was given here.
 *
 * The call stops at the first block that is not available. Blocks taken so far stay in the pool, and `out` (may be
 * NULL) says how many.
 *
 * Errors: FORKED, OUT_OF_HOST_MEMORY, and for a block OVER_LIMIT, OUT_OF_DEVICE_MEMORY and whatever else gm_explain
 * gives. INVALID_ARGUMENT: a size of 0, more than 2^64-1 blocks, or a struct_size that gm does not know. */
GM_API gm_status gm_pool_warm_up(gm_pool *pool, const gm_warm_up *list, size_t count, gm_stream *stream,
                                 gm_warm_up_result *out, gm_error *err);

/* Warms a pool up with the blocks that lived at once in a recorded trace. A pool of buckets takes them by powers of
 * two. Another pool takes the peak in one piece, or in pieces of the driver's largest allocation. Errors: those of
 * gm_pool_warm_up and gm_trace_profile_read. The library is libgm_trace. */
GM_API gm_status gm_pool_warm_up_from_trace(gm_pool *pool, const char *path, gm_stream *stream, gm_warm_up_result *out,
                                            gm_error *err);

GM_END_DECLS

#endif
