#include "gm/cleanup.h"

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/context/config.h"
#include "core/device/evictor.h"
#include "core/pool/pool.h"
#include "gm/config.h"

/* Each call here on a pool is a trim with another number of bytes to keep. A trim asks the streams, empties quick
 * lists, and joins free chunks before it gives anything back. So a trim that keeps all does just that. It looks at
 * blocks in buckets only as far as it must. */

static const char cleanup_op[] = "gm_pool_cleanup";

static gm_status cleanup_threshold(gm_pool *pool, double asked, double *out, gm_error *err) {
  *out = asked == GM_CLEANUP_THRESHOLD_CONFIG ? gm__keep_cleanup(&pool->heap) : asked;
  if (*out >= 0 && *out <= 1) return GM_OK;
  return gm__bad_argument(err, cleanup_op, "`threshold` is %g, must be 0 to 1", asked);
}

static uint64_t cleanup_under_used(gm_pool *pool, uint64_t reserved) {
  gm__leaving leaving = {0};
  if (pool->heap.provider.captures) return 0; /* recordings name its memory */
  gm__heap_await(&pool->heap);
  gm__dedicated_sweep(&pool->heap.dedicated, reserved, &leaving);
  gm__provider_return(&pool->heap.provider, &leaving);
  return leaving.bytes;
}

gm_status gm_pool_cleanup(gm_pool *pool, double threshold, bool force, uint64_t *out_bytes, gm_error *err) {
  GM__UNCANCELLED();
  double share;
  uint64_t bytes = 0;
  gm_status status = gm__pool_alive(pool, cleanup_op, err);
  if (!status) status = cleanup_threshold(pool, threshold, &share, err);
  if (status) return status;
  const uint64_t limit = force ? UINT64_MAX : gm__heap_most(&pool->heap);
  if (!force && limit == UINT64_MAX) {
    return gm__fail(err, GM_ERR_UNAVAILABLE, cleanup_op,
                    "pool \"%s\" has no cap and its device does not say what is free", pool->heap.provider.name);
  }
  const uint64_t most = force ? 0 : gm__scale_sat(limit, share);
  bytes = gm__keep_clean(&pool->heap);
  if (gm__heap_stats(&pool->heap).reserved_bytes > most)
    bytes += cleanup_under_used(pool, most) + gm_pool_shrink(pool, most);
  if (out_bytes) *out_bytes = bytes;
  return GM_OK;
}

uint64_t gm_pool_trim(gm_pool *pool, uint64_t keep_bytes) {
  GM__UNCANCELLED();
  return !gm__pool_lives(pool) || gm__pool_forked(pool) ? 0 : gm__heap_trim(&pool->heap, keep_bytes, UINT64_MAX);
}

uint64_t gm_pool_clear(gm_pool *pool) {
  GM__UNCANCELLED();
  return gm_pool_trim(pool, 0);
}

uint64_t gm_pool_shrink(gm_pool *pool, uint64_t reserved_bytes) {
  GM__UNCANCELLED();
  if (!gm__pool_lives(pool)) return 0;
  return gm_pool_trim(pool, gm__sub_sat(reserved_bytes, gm__heap_stats(&pool->heap).in_use_bytes));
}

uint64_t gm_pool_collect(gm_pool *pool) {
  GM__UNCANCELLED();
  return !gm__pool_lives(pool) || gm__pool_forked(pool) ? 0 : gm__heap_collect(&pool->heap);
}

/* The share of the reserved bytes that nobody uses. */
static double cleanup_unused(const gm_stats *stats) {
  return stats->reserved_bytes ? (double)stats->pooled_bytes / (double)stats->reserved_bytes : 0;
}

uint64_t gm_pool_coalesce(gm_pool *pool, bool aggressive) {
  GM__UNCANCELLED();
  if (!gm__pool_lives(pool) || gm__pool_forked(pool)) return 0;
  if (aggressive) return gm_pool_clear(pool);
  const gm_stats stats = gm__heap_stats(&pool->heap);
  const double threshold = gm__keep_coalesce(&pool->heap);
  return cleanup_unused(&stats) > threshold ? gm_pool_collect(pool) : stats.reclaimable_bytes;
}

/* ---- all pools ---- */

/* The next pool of the device (NULL: of the context), with a pin, which moves on with each step. Pools whose memory is
 * not for others have no reclaimer in a list: they are passed over. */
static gm_pool *cleanup_next(gm_context *ctx, const gm_device *device, gm_pool *from) {
  gm__mutex_lock(&ctx->lock);
  gm_pool *pool = from ? from->next : ctx->slots[GM__SLOT_POOLS];
  while (pool && ((device && pool->device != device) || !gm__reclaimer_pin(&pool->heap.reclaimer))) pool = pool->next;
  if (from) gm__reclaimer_unpin(&from->heap.reclaimer);
  gm__mutex_unlock(&ctx->lock);
  return pool;
}

/* Nobody is asked from inside an evictor. */
static void cleanup_evict(gm_device *device) {
  gm__evict_run run;
  if (!gm__evict_run_begin(&run, device)) return;
  for (gm_evictor *each = NULL; (each = gm__evict_run_next(&run, each));) gm__evictor_ask(each, UINT64_MAX);
  gm__evict_run_end(&run);
}

static void cleanup_evict_all(gm_context *ctx) {
  uint64_t id = 0;
  for (gm_device *device; (device = gm__evicting_pin(ctx, &id));) {
    cleanup_evict(device);
    gm__evicting_unpin(device);
  }
}

/* Memory that a guard holds back goes, too. */
static void cleanup_all(gm_context *ctx, const gm_device *device, uint64_t *out_bytes) {
  uint64_t bytes = 0;
  for (gm_pool *pool = NULL; (pool = cleanup_next(ctx, device, pool));) {
    if (pool->heap.reap) pool->heap.reap(pool->heap.guard);
    bytes = gm__add_sat(bytes, gm__heap_trim(&pool->heap, 0, UINT64_MAX));
  }
  if (out_bytes) *out_bytes = bytes;
}

gm_status gm_device_cleanup(gm_device *device, uint64_t *out_bytes, gm_error *err) {
  GM__UNCANCELLED();
  const gm_status status = gm__device_check(device, "gm_device_cleanup", err);
  if (status) return status;
  cleanup_evict(device);
  cleanup_all(device->ctx, device, out_bytes);
  return GM_OK;
}

gm_status gm_context_cleanup(gm_context *ctx, uint64_t *out_bytes, gm_error *err) {
  GM__UNCANCELLED();
  const gm_status status = gm__context_check(ctx, "gm_context_cleanup", err);
  if (status) return status;
  cleanup_evict_all(ctx);
  cleanup_all(ctx, NULL, out_bytes);
  return GM_OK;
}
