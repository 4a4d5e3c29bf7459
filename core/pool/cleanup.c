#include "gm/cleanup.h"

#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/pool/supply.h"

/* All of it is a trim with another figure to keep: a trim asks the streams, empties quick lists and joins holes of
 * segments before it gives anything back, so one that keeps everything does just that. Blocks in buckets it looks at
 * only as far as it must. */

static const char cleanup_op[] = "gm_pool_cleanup";

static gm_status cleanup_threshold(const gm_pool *pool, double asked, double *out, gm_error *err) {
  *out = asked == GM_CLEANUP_THRESHOLD_CONFIG ? gm__config_fraction(pool->device->ctx, "cleanup.threshold") : asked;
  if (*out >= 0 && *out <= 1) return GM_OK;
  return gm__bad_argument(err, cleanup_op, "`threshold` is %g, must be 0 to 1", asked);
}

/* Of each class what was not asked for since the last look, oldest first, until at most `reserved` bytes are. */
static void cleanup_class(gm_pool *pool, const gm__bucket *bucket, uint64_t reserved, gm__leaving *leaving) {
  for (gm__node *node = bucket->list.last, *newer; node && bucket->list.count > bucket->served; node = newer) {
    newer = node->links[GM__BY_BUCKET].prev;
    if (atomic_load(&pool->stats.reserved_bytes) - leaving->bytes <= reserved) return;
    if (gm__pool_settle(pool, node)) gm__supply_detach(pool, leaving, node);
  }
}

static uint64_t cleanup_under_used(gm_pool *pool, uint64_t reserved) {
  gm__leaving leaving = {0};
  gm__supply_await(pool);
  gm__mutex_lock(&pool->lock);
  for (uint32_t i = 0; i < pool->buckets.class_count; i++) {
    cleanup_class(pool, &pool->buckets.classes[i], reserved, &leaving);
    pool->buckets.classes[i].served = 0;
  }
  gm__mutex_unlock(&pool->lock);
  gm__supply_return(pool, &leaving);
  return leaving.bytes;
}

gm_status gm_pool_cleanup(gm_pool *pool, double threshold, bool force, uint64_t *out_bytes, gm_error *err) {
  double share;
  uint64_t bytes = 0;
  gm_status status = gm__pool_check(pool, cleanup_op, err);
  if (!status) status = cleanup_threshold(pool, threshold, &share, err);
  if (status) return status;
  const uint64_t limit = force ? UINT64_MAX : gm__pool_limit(pool);
  if (!force && limit == UINT64_MAX) {
    return gm__fail(err, GM_ERR_UNAVAILABLE, 0, cleanup_op,
                    "pool \"%s\" has no cap and its device does not say what is free", pool->name);
  }
  const uint64_t most = force ? 0 : gm__scale_sat(limit, share);
  bytes = gm__cache_clean(pool);
  if (gm__pool_stats(pool).reserved_bytes > most) bytes += cleanup_under_used(pool, most) + gm_pool_shrink(pool, most);
  if (out_bytes) *out_bytes = bytes;
  return GM_OK;
}

uint64_t gm_pool_clear(gm_pool *pool) { return gm_pool_trim(pool, 0); }

uint64_t gm_pool_shrink(gm_pool *pool, uint64_t reserved_bytes) {
  if (!gm__pool_is(pool)) return 0;
  return gm_pool_trim(pool, gm__sub_sat(reserved_bytes, gm__pool_stats(pool).in_use_bytes));
}

static void cleanup_settle_buckets(gm_pool *pool) {
  gm__mutex_lock(&pool->lock);
  for (gm__node *node = pool->buckets.ages.last; node; node = node->links[GM__BY_AGE].prev) {
    gm__pool_settle(pool, node);
  }
  gm__mutex_unlock(&pool->lock);
}

uint64_t gm_pool_collect(gm_pool *pool) {
  if (!gm__pool_is(pool) || gm__pool_forked(pool)) return 0;
  gm_pool_trim(pool, UINT64_MAX);
  cleanup_settle_buckets(pool);
  return gm__pool_stats(pool).reclaimable_bytes;
}

uint64_t gm_pool_coalesce(gm_pool *pool, bool aggressive) {
  if (!gm__pool_is(pool) || gm__pool_forked(pool)) return 0;
  if (aggressive) return gm_pool_clear(pool);
  const gm_stats stats = gm__pool_stats(pool);
  const double threshold = gm__config_fraction(pool->device->ctx, "coalescing_threshold");
  return gm_stats_fragmentation(&stats) > threshold ? gm_pool_collect(pool) : stats.reclaimable_bytes;
}
