/* A cache keeps objects of the host program under keys, which are plain bytes. It bounds how many there are and how
 * many bytes they have. When a new object needs room, the cache evicts others, and calls `release` for each.
 *
 * A lease says that somebody uses an object. gm evicts no object that is leased or kept. gm knows nothing of an object
 * but its address and its bytes. Every call is thread-safe and O(1), but for clear and destroy. */
#ifndef GM_CACHE_H
#define GM_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gm/context.h"

GM_BEGIN_DECLS

struct gm_pool;

enum { GM_CACHE_KEY_MOST = 4096 };

/* Which object goes first. */
typedef enum gm_cache_policy {
  GM_CACHE_S3FIFO = 0, /* those that were used once go first: scans and loops push little out (S3-FIFO) */
  GM_CACHE_LRU = 1     /* the one whose last use is the longest ago */
} gm_cache_policy;

/* Gives an object back to the host program. The cache calls it exactly once for each object that it took, in the thread
 * whose call let the object go, and under no lock. With a pool that may be a thread whose request the pool could not
 * serve. It may call gm, this cache included, but not gm_cache_destroy for it. It must not throw. */
typedef void (*gm_cache_release)(void *user, void *object, uint64_t bytes);

/* Zero-initialised with struct_size set, these are the defaults. */
typedef struct gm_cache_params {
  uint32_t struct_size;
  gm_cache_policy policy;
  uint64_t max_entries;     /* 0: the key gpu.memory.cache_size, as it is at each put; UINT64_MAX: no bound */
  uint64_t max_bytes;       /* 0: no bound */
  gm_cache_release release; /* NULL: objects need none */
  void *user;               /* handed to `release`; borrowed until gm_cache_destroy returns */
  struct gm_pool *pool;     /* whose memory the objects hold, so that they give way when it is short: the cache is an
                               evictor of that pool (gm/evictor.h). `release` frees the memory, and the bytes of an
                               object are those of its blocks. It is of the cache's context, and is not destroyed
                               before the cache. NULL: objects go only for the bounds */
} gm_cache_params;

/* Counts are since the cache was made, unless they say "now". */
typedef struct gm_cache_stats {
  uint32_t struct_size;
  uint64_t entries, bytes;           /* in the cache now; neither is above its bound after a put */
  uint64_t held_entries, held_bytes; /* of those: leased or kept now */
  uint64_t leases;                   /* now, those of objects that left the cache included */
  uint64_t hits, misses;             /* answers of gm_cache_get */
  uint64_t puts;                     /* objects that the cache took */
  uint64_t evictions, evicted_bytes; /* objects that went for want of room, also in the pool */
  uint64_t refused;                  /* puts that answered OVER_LIMIT */
} gm_cache_stats;

typedef struct gm_cache gm_cache;             /* it keeps its context from being destroyed */
typedef struct gm_cache_lease gm_cache_lease; /* one use of an object */

/* Makes a cache. `params` may be NULL. The caller destroys *out. Errors: INVALID_ARGUMENT: also for a pool
 * of another context. OUT_OF_HOST_MEMORY, FORKED. */
GM_API gm_status gm_cache_create(gm_context *ctx, const gm_cache_params *params, gm_cache **out, gm_error *err);

/* Releases all objects, kept ones too, and ends the cache. NULL is GM_OK. Meanwhile no other thread, and no `release`,
 * may use the cache. With a pool no evictor of its device makes this call. BUSY: there are leases, and nothing has
 * changed. In a forked child the call gives back gm's host memory, ends all leases, releases no object, and is GM_OK.
 * INVALID_ARGUMENT: debug builds know that it was destroyed. */
GM_API gm_status gm_cache_destroy(gm_cache *cache, gm_error *err);

/* Puts an object, which replaces an earlier one of the key. A kept key stays kept. On GM_OK the object belongs to the
 * cache; after a failure it is the caller's, and the cache is as it was. With `out_lease`, the caller holds a lease of
 * the object, and gives it back. NULL: no lease. `object` may be NULL. Errors: OVER_LIMIT: the object does not fit
 * beside what is leased and kept. INVALID_ARGUMENT: `key` is NULL, or has not 1 to GM_CACHE_KEY_MOST bytes.
 * OUT_OF_HOST_MEMORY, FORKED.
 *
 * In a full cache, the first put after many leases looks once at each object that is held, some 16 ns each. A put that
 * pushes many objects out lets them go one by one. Both go in pieces of a thousand, and other threads use the cache in
 * between. */
GM_API gm_status gm_cache_put(gm_cache *cache, const void *key, size_t key_bytes, void *object, uint64_t bytes,
                              gm_cache_lease **out_lease, gm_error *err);

/* Finds the object of a key, and leases it. The caller gives *out_lease back by gm_cache_return. `out_object` may be
 * NULL. NOT_FOUND: there is none. Other errors as for gm_cache_put. */
GM_API gm_status gm_cache_get(gm_cache *cache, const void *key, size_t key_bytes, gm_cache_lease **out_lease,
                              void **out_object, gm_error *err);

/* Returns the object of a lease. It stays valid until gm_cache_return, even if the key got another object meanwhile. */
GM_API void *gm_cache_lease_object(const gm_cache_lease *lease);

/* Gives a lease back. NULL is allowed. An object that left the cache is released with its last lease. In a forked child
 * it releases no object. */
GM_API void gm_cache_return(gm_cache_lease *lease);

/* Says whether the cache must keep the object of a key, until it is removed or the host program says no. To say it
 * twice changes nothing. NOT_FOUND: there is none. INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_cache_keep(gm_cache *cache, const void *key, size_t key_bytes, bool keep, gm_error *err);

/* Removes the object of a key, kept or not. It is released now, or with its last lease. NOT_FOUND: there is none.
 * INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_cache_remove(gm_cache *cache, const void *key, size_t key_bytes, gm_error *err);

/* Removes all objects as gm_cache_remove does, a thousand at a time. One that another thread puts meanwhile may stay.
 * INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_cache_clear(gm_cache *cache, gm_error *err);

/* Fills `out` with the figures of a cache. The caller sets out->struct_size. INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_cache_get_stats(gm_cache *cache, gm_cache_stats *out, gm_error *err);

GM_END_DECLS

#endif
