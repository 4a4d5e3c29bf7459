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

/* A pool of GM_STRATEGY_FIXED takes all blocks of gm_pool_params.sizes in gm_pool_create. The default is 16 blocks of 1
 * MiB, 4 of 16 MiB, and 1 of 256 MiB. Each block is a driver allocation of its own. In all else it is a pool with
 * GM_POOL_NO_TRIM, and its calls are as thread-safe. The caller owns its blocks until gm_free.
 *
 * A request gets a block of the smallest size that holds it. In the statistics, in_use_bytes less requested_bytes are
 * the bytes that this wastes, up to 4 GiB a block. When all blocks of a size are out, gm_pool_params.max_bytes says
 * what happens. 0: the cap is what gm_pool_create took, and the answer is OVER_LIMIT. More: the pool takes new blocks
 * of that size up to the cap, and keeps them. With GM_POOL_TAKE_LARGER a block of a larger size comes first.
 *
 * A request beyond the largest size is refused at once: EXHAUSTED. With GM_POOL_PASS_LARGER it gets exactly its bytes
 * from the driver, as far as max_bytes allows. That memory goes back in gm_free, or in a later one once its stream is
 * done. After gm_pool_trim the pool takes blocks again when they are needed. Red zones lie beside the sizes. */
#define GM_FIXED_SIZES_MOST 16 /* the most sizes of such a pool */

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

/* Has the pool keep at least `bytes` idle bytes. Where it keeps fewer, the call takes `bytes` from it at once, and
 * gives them back in the host's order. It takes one piece, or pieces of the driver's largest allocation. Until the next
 * trim, requests for as much together need no new memory. Requests of other threads go on meanwhile.
 *
 * The call stops at the first piece that is not available, and what was taken stays in the pool. 0 bytes are GM_OK.
 * NOT_SUPPORTED: the pool is none of BEST_FIT, so it needs to know the sizes of blocks (gm_pool_warm_up). Other errors
 * are those of gm_pool_warm_up. */
GM_API gm_status gm_pool_prepare(gm_pool *pool, uint64_t bytes, gm_error *err);

GM_END_DECLS

#endif
