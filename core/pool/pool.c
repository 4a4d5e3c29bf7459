#include "core/pool/pool.h"

gm_status gm__pool_alive(const gm_pool *pool, const char *op, gm_error *err) {
  if (!pool) return gm__bad_argument(err, op, "`pool` is NULL");
  if (!gm__pool_lives(pool)) return gm__bad_argument(err, op, "`pool` is destroyed");
  return gm__device_check(pool->device, op, err);
}

gm_device *gm_pool_device(const gm_pool *pool) { return gm__pool_lives(pool) ? pool->device : NULL; }

const char *gm_pool_name(const gm_pool *pool) { return gm__pool_lives(pool) ? pool->heap.provider.name : ""; }

gm_strategy gm_pool_strategy(const gm_pool *pool) {
  if (!gm__pool_lives(pool)) return GM_STRATEGY_AUTO;
  return pool->heap.dedicated.buckets.fixed.count ? GM_STRATEGY_FIXED : pool->heap.strategy;
}

gm_tracker *gm_pool_tracker(const gm_pool *pool) {
  const bool tracks = gm__pool_lives(pool) && gm__observers_track(&pool->heap.observers);
  return tracks ? atomic_load(&pool->heap.observers.tracker) : NULL;
}
