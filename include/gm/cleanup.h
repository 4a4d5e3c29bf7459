/* Other ways to give back the memory that a pool keeps, or all pools; gm_pool_trim (gm/pool.h) is the plain one. No
 * function here frees a block that a caller holds, or waits for a busy stream. Memory that a stream may still use stays
 * in the pool. The functions that return bytes answer 0 for a pool that is NULL, destroyed or of another process. Every
 * function is thread-safe. */
#ifndef GM_CLEANUP_H
#define GM_CLEANUP_H

#include "gm/pool.h"

GM_BEGIN_DECLS

#define GM_CLEANUP_THRESHOLD_CONFIG (-1.0) /* the value of the key cleanup.threshold (0.9) */

/* Gives back old and surplus memory of a pool, and adapts its caches.
 *
 * First it gives back memory that nobody has used for cache.max_age ("auto": a minute), and memory beyond
 * cache.max_bytes. The bounds of the caches follow the memory pressure by one step (docs/pools.md).
 *
 * Frees are not timestamped. gm inspects a pool when it is created, when it grows, and in this call. Memory is old when
 * two inspections at least cache.max_age apart both found it free. So this call first marks newly freed memory, and
 * gives it back at the next call.
 *
 * Then the call compares the reserved bytes with the pool's limit. `threshold` is a share of that limit, from 0 to 1.
 * Above it the surplus goes back, as far as nobody uses it. A pool of buckets begins with the buckets that were least
 * asked for. With `force` all unused memory goes back, whatever is reserved.
 *
 * *out_bytes (may be NULL) is the number of bytes given back. Errors: INVALID_ARGUMENT, FORKED. UNAVAILABLE: no limit
 * is known, and `force` is false. */
GM_API gm_status gm_pool_cleanup(gm_pool *pool, double threshold, bool force, uint64_t *out_bytes, gm_error *err);

/* Gives back all memory that nobody uses. Returns the bytes given back. */
GM_API uint64_t gm_pool_clear(gm_pool *pool);

/* Gives back unused memory until at most `reserved_bytes` are reserved; blocks that callers hold count. Returns the
 * bytes given back. */
GM_API uint64_t gm_pool_shrink(gm_pool *pool, uint64_t reserved_bytes);

/* Makes freed memory available to every stream where its own streams are done, which gm asks them. Nothing is given
 * back to the driver. Returns the bytes that a trim would give back now. */
GM_API uint64_t gm_pool_collect(gm_pool *pool);

/* Joins neighbouring free chunks, including those in quick lists and those of streams that are done. It does so where
 * the unused share of the reserved bytes is above the key coalescing_threshold (0.1). With `aggressive` it does so in
 * any case, and gives back segments that nobody uses. Returns the bytes that a trim would give back now, or that were
 * given back.
 *
 * A pool of buckets has no neighbours to join. There the call acts as gm_pool_collect, or with `aggressive` as
 * gm_pool_clear. */
GM_API uint64_t gm_pool_coalesce(gm_pool *pool, bool aggressive);

/* Tunes a running pool: gives one key of the configuration (gm/config.h) another value for this pool. The value holds
 * from then on, and other threads may use the pool meanwhile. These keys can be changed: cache.stream_local,
 * cache.global, cache_size, cache.max_bytes, cache.max_age, scaling.low, scaling.high, scaling.factor,
 * max_pooled_per_bucket, max_pool_bytes, segment_size, coalescing_threshold, aggressive_coalescing, cleanup.threshold,
 * pressure.medium, pressure.high, pressure.critical, pressure.hysteresis.
 *
 * Memory above a new cache.max_bytes goes back at once. Blocks above a new bound in number go with the next frees and
 * trims. A new bound in number or scaling.factor undoes earlier scaling of the bounds. aggressive_coalescing is
 * gm_pool_coalesce with `aggressive` now, and lasts: freed blocks join at once, and segments that nobody uses go when
 * the pool grows. Watches of the pool follow its thresholds at their next look.
 *
 * Errors: INVALID_ARGUMENT: there is no such key, or it does not take the value. Thresholds of the pressure must stay
 * in order. NOT_SUPPORTED: the key has no effect in this pool, which the message explains. Keys of buckets have none in
 * a pool of best fit. aggressive_coalescing and segment_size have none in a pool of buckets, and segment_size has none
 * in a pool that maps pages. cache.max_bytes has none in a pool with a bound in keep_bytes. FORKED. */
GM_API gm_status gm_pool_configure(gm_pool *pool, const char *key, const char *value, gm_error *err);

/* Writes the value that a key of gm_pool_configure has for this pool now, as terminated text that gm_pool_configure
 * takes. That is the value set last, or what the pool found in the configuration or in its parameters. Pressure may
 * change the bounds in number for a time, which is not in it. 32 bytes are enough. Thread-safe. Errors:
 * INVALID_ARGUMENT: there is no such key, or `capacity` is too small. NOT_SUPPORTED: as gm_pool_configure. FORKED. */
GM_API gm_status gm_pool_get_config(gm_pool *pool, const char *key, char *text, size_t capacity, gm_error *err);

/* Gives back, in an emergency, all memory that nobody uses in any pool of a device. First it asks each evictor of the
 * device (gm/evictor.h) for all that it can free, unless an evictor of the device makes the call. Then it asks all
 * streams how far they are. It gives back what they are done with, also what a pool holds back to check freed blocks.
 * Pools with an upstream, and those with GM_POOL_NO_TRIM, keep their memory. A pool that another thread destroys
 * meanwhile may answer BUSY to that thread, if a driver is slow. Hold no lock that an evictor takes.
 *
 * *out_bytes (may be NULL) is the number of bytes that the pools gave back. It leaves out memory that evictors freed
 * outside of gm. Errors: INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_device_cleanup(gm_device *device, uint64_t *out_bytes, gm_error *err);

/* Gives back, as gm_device_cleanup does, memory of all devices of a context, and asks the evictors of all of them. A
 * device that another thread closes meanwhile may answer BUSY to that thread. Errors: INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_context_cleanup(gm_context *ctx, uint64_t *out_bytes, gm_error *err);

GM_END_DECLS

#endif
