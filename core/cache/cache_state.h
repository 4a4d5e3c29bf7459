/* The structs of a cache and its leases. cache.c and cache_open.c read them. */
#ifndef GM_CORE_CACHE_CACHE_STATE_H
#define GM_CORE_CACHE_CACHE_STATE_H

#include "core/algo/cache_policy.h"
#include "core/base/key_map.h"
#include "core/base/thread.h"
#include "core/cache/give_way.h"
#include "core/context/object.h"
#include "gm/cache.h"

/* The members that a get and a return use come first, and the key lies behind the entry. So both touch few lines of
 * memory. */
struct gm_cache_lease {
  gm__key_entry head;
  void *object;
  uint64_t bytes;
  uint64_t leases;
  bool kept, in_cache;
  gm__cache_entry turn;
  gm_cache *cache;
  struct gm_cache_lease *next, *previous; /* in `left`, or `next` alone among those that go */
  unsigned char key[];
};

struct gm_cache {
  gm__object head;
  gm_context *ctx;
  const _Atomic uint64_t *generation_at; /* holds `generation` until the process forks */
  uint64_t generation;
  bool follows;                    /* the configuration says max_entries */
  _Atomic uint64_t followed;       /* gm__config_changes when the bound was read; changes under the lock */
  uint64_t max_entries, max_bytes; /* UINT64_MAX: no bound */
  gm_cache_release release;
  void *user;
  gm__give_way way;
  gm__mutex lock;
  gm__key_map map;
  gm__cache_policy policy;
  uint64_t aside; /* objects in the cache that are held, and out of the policy meanwhile */
  gm_cache_lease *left;
  gm_cache_stats stats;
};

/* OK: the cache lives, in this process. */
gm_status gm__cache_check(const gm_cache *cache, const char *op, gm_error *err);

/* All objects go. `forked`: they are the parent's. REQUIRES: nobody else uses the cache. */
void gm__cache_empty(gm_cache *cache, bool forked);

/* The cache as an evictor (give_way.h): the bytes that nobody holds. Evicts up to so many, and returns how many. */
uint64_t gm__cache_evictable(void *user);
uint64_t gm__cache_evict(void *user, uint64_t bytes);

#endif
