/* A cache gives way where the memory of a pool runs short: it is an evictor of that pool. */
#ifndef GM_CORE_CACHE_GIVE_WAY_H
#define GM_CORE_CACHE_GIVE_WAY_H

#include "gm/context.h"
#include "gm/evictor.h"

typedef struct gm__give_way {
  struct gm_pool *pool; /* NULL: the cache gives way to nobody */
  gm_evictor *evictor;
} gm__give_way;

/* Is the pool (NULL: none) one that a cache of the context may give way to? */
gm_status gm__give_way_check(const gm_context *ctx, struct gm_pool *pool, const char *op, gm_error *err);

/* The calls that a request of the pool makes, as in gm_evictor_params. */
typedef struct gm__give_way_calls {
  uint64_t (*evictable)(void *user);
  uint64_t (*evict)(void *user, uint64_t bytes);
  void *user;
} gm__give_way_calls;

/* From now on the pool's requests may call. The pool stays until gm__give_way_end. */
gm_status gm__give_way_begin(gm__give_way *way, struct gm_pool *pool, const gm__give_way_calls *calls, gm_error *err);

/* No request is in the cache any more. REQUIRES: no lock. */
void gm__give_way_end(gm__give_way *way);

#endif
