#include "core/cache/give_way.h"

#include "core/base/error.h"
#include "core/pool/pool.h"

/* Invariant: a cache counts as a guest of its pool, which therefore outlives it. */

gm_status gm__give_way_check(const gm_context *ctx, gm_pool *pool, const char *op, gm_error *err) {
  const gm_status status = pool ? gm__pool_alive(pool, op, err) : GM_OK;
  if (status || !pool || pool->ctx == ctx) return status;
  return gm__bad_argument(err, op, "`params->pool` is of another context");
}

gm_status gm__give_way_begin(gm__give_way *way, gm_pool *pool, const gm__give_way_calls *calls, gm_error *err) {
  const gm_evictor_params params = {.struct_size = sizeof params,
                                    .name = "cache",
                                    .pool = pool,
                                    .evictable = calls->evictable,
                                    .evict = calls->evict,
                                    .user = calls->user};
  if (!pool) return GM_OK;
  const gm_status status = gm_evictor_register(pool->device, &params, &way->evictor, err);
  if (status) return status;
  way->pool = pool;
  atomic_fetch_add(&pool->guests, 1);
  return GM_OK;
}

void gm__give_way_end(gm__give_way *way) {
  if (!way->pool) return;
  (void)gm_evictor_unregister(way->evictor, NULL);
  atomic_fetch_sub(&way->pool->guests, 1);
}
