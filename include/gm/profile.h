/* A profile of a pool in use: which sizes it is asked for, how often they repeat, and how long blocks live. No file is
 * written. gm_advise makes advice of it. Every function is thread-safe. */
#ifndef GM_PROFILE_H
#define GM_PROFILE_H

#include <stddef.h>

#include "gm/advice.h"
#include "gm/pool.h"

GM_BEGIN_DECLS

/* How a pool uses one size. Never grows. */
typedef struct gm_size_use {
  uint64_t bytes;  /* as requests asked for it */
  uint64_t allocs; /* allocations of that size */
  uint64_t live;   /* blocks of that size that are alive */
} gm_size_use;

/* Begins a profile of a pool, while other threads may allocate. Blocks that are alive count as allocated now. A pool
 * that is not profiled pays nothing for it. A profile takes 64 KiB of host memory for each thread that allocates. Each
 * block that lived at once takes 24 bytes, and each size up to 64. An allocation and its free cost about 0.2 us more.
 * Most of that comes at once: about half a millisecond at every 8000th event of a thread.
 *
 * gm_pool_destroy ends a profile. Errors: INVALID_ARGUMENT, OUT_OF_HOST_MEMORY, FORKED. BUSY: the pool is being
 * profiled or recorded (gm/record.h) already. */
GM_API gm_status gm_pool_profile_begin(gm_pool *pool, gm_error *err);

/* Tells what the pool was asked for since gm_pool_profile_begin; the profile goes on. For a pool that is not profiled
 * it tells of the blocks that are alive. `out` is as of a trace, with these differences: it has no marks and no growth,
 * which a tracker tells (gm_tracker_find_between). Peaks of several threads are an upper bound. `streams` is the number
 * of streams and the host.
 *
 * Errors: INVALID_ARGUMENT, FORKED. OUT_OF_HOST_MEMORY: also where host memory was short since the begin. BUSY: the
 * pool is being recorded; the trace has all this. */
GM_API gm_status gm_pool_profile_read(gm_pool *pool, gm_trace_profile *out, gm_error *err);

/* Does as gm_pool_profile_read, for each size: the one that was asked for most often comes first, then the larger one.
 * Fills at most `capacity` entries of `out`, which may be NULL for 0. *out_count is how many sizes there are: the
 * diversity of the pool's blocks. Errors: those of gm_pool_profile_read. */
GM_API gm_status gm_pool_profile_sizes(gm_pool *pool, gm_size_use *out, size_t capacity, size_t *out_count,
                                       gm_error *err);

/* Ends a profile. Allocations cost no more than before the begin. Errors: INVALID_ARGUMENT, FORKED. NOT_FOUND: the pool
 * is not being profiled. */
GM_API gm_status gm_pool_profile_end(gm_pool *pool, gm_error *err);

GM_END_DECLS

#endif
