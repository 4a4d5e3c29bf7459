/* Giving back what a pool keeps, and tidying it (F21, F12). gm_pool_trim (gm/pool.h) is the plain form. None of these
 * takes a block from its owner or waits for a stream that is busy; memory that a stream may still use stays. Functions
 * that return bytes answer 0 for a pool that is NULL, destroyed or of another process. Thread-safe. */
#ifndef GM_CLEANUP_H
#define GM_CLEANUP_H

#include "gm/pool.h"

GM_BEGIN_DECLS

#define GM_CLEANUP_THRESHOLD_CONFIG (-1.0) /* the key cleanup.threshold (0.9) */

/* First what nobody has used for cache.max_age (auto: a minute) goes back, and what is over cache.max_bytes; the bounds
 * of caches follow the pressure by a step (docs/pools.md). Frees are not timestamped. gm inspects a
 * pool when it is created, when it grows, and in this call. Memory is old when two inspections at least cache.max_age
 * apart both found it free. So this call first marks newly freed memory, and gives it back at the next call. Then,
 * where the pool has reserved more than `threshold` (0 to 1) of what it may, give back what is over that, if nobody
 * uses it, of buckets first what was asked for least; `force`: all that nobody uses, whatever is reserved. *out_bytes
 * (NULL: not wanted): given back. INVALID_ARGUMENT; UNAVAILABLE: no limit is known to measure by, and not `force`;
 * FORKED. */
GM_API gm_status gm_pool_cleanup(gm_pool *pool, double threshold, bool force, uint64_t *out_bytes, gm_error *err);

/* Give back all that nobody uses. The bytes given back. */
GM_API uint64_t gm_pool_clear(gm_pool *pool);

/* The same until at most `reserved_bytes` are reserved, blocks that are out included. */
GM_API uint64_t gm_pool_shrink(gm_pool *pool, uint64_t reserved_bytes);

/* Ask all streams how far they are, and take back what they are done with, so that it is anybody's; nothing is given
 * back. The bytes that a trim would give back now. */
GM_API uint64_t gm_pool_collect(gm_pool *pool);

/* Join free neighbours, those in quick lists and those of streams that are done included, where more than the share
 * coalescing_threshold (0.1) of what is reserved is unused; `aggressive`: in any case, and segments that nobody uses
 * then go back. The bytes that a trim would give back now, or that were given back. A pool of buckets has no neighbours
 * to join: there it is gm_pool_collect, or gm_pool_clear. */
GM_API uint64_t gm_pool_coalesce(gm_pool *pool, bool aggressive);

GM_END_DECLS

#endif
