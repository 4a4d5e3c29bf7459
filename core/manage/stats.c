#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/device/pressure.h"
#include "core/device/watch.h"
#include "core/manage/fragmentation.h"
#include "core/manage/lifecycle.h"
#include "core/manage/perf.h"

/* Figures of pools, and sums over them. Invariant: under the context's lock its slot for pools is the first of a list
 * of every pool that is alive. Nothing is added up before somebody asks, so allocations and frees pay nothing for
 * it. */

void gm__pool_enlist(gm_pool *pool) {
  gm_context *ctx = pool->device->ctx;
  gm__mutex_lock(&ctx->lock);
  pool->next = ctx->slots[GM__SLOT_POOLS];
  if (pool->next) pool->next->prev = pool;
  ctx->slots[GM__SLOT_POOLS] = pool;
  gm__mutex_unlock(&ctx->lock);
}

void gm__pool_delist(gm_pool *pool) {
  gm_context *ctx = pool->device->ctx;
  gm__mutex_lock(&ctx->lock);
  gm__perf_leave(pool);
  if (pool->next) pool->next->prev = pool->prev;
  if (pool->prev) {
    pool->prev->next = pool->next;
  } else {
    ctx->slots[GM__SLOT_POOLS] = pool->next;
  }
  gm__mutex_unlock(&ctx->lock);
}

enum { STATS_PIECE = 256 }; /* so many pools are looked at, until other threads may enter */

/* A pinned pool stays in the list. One that lends nothing has no pin, so the next one that has serves. */
gm_pool *gm__pools_walk(gm_context *ctx, gm_pool *pool, uint32_t *looks) {
  if (!pool) return ctx->slots[GM__SLOT_POOLS];
  if (++*looks >= STATS_PIECE && gm__reclaimer_pin(&pool->heap.reclaimer)) {
    gm__mutex_unlock(&ctx->lock);
    gm__mutex_lock(&ctx->lock);
    gm__reclaimer_unpin(&pool->heap.reclaimer);
    *looks = 0;
  }
  return pool->next;
}

gm_status gm_pool_stats(gm_pool *pool, gm_stats *out) {
  if (!gm__pool_lives(pool)) return GM_ERR_INVALID_ARGUMENT;
  const gm_status status = gm__sized_check(out, sizeof *out, "gm_pool_stats", "out", NULL);
  if (status) return status;
  const gm_stats stats = gm__pool_stats(pool);
  gm__sized_out(out, &stats, sizeof stats);
  return GM_OK;
}

/* Adds up the pools of the device, or all of the context for NULL. */
static void stats_add(gm_context *ctx, const gm_device *device, gm_stats *out) {
  gm_stats sum = {.struct_size = sizeof sum};
  uint32_t looks = 0;
  gm__mutex_lock(&ctx->lock);
  for (gm_pool *pool = NULL; (pool = gm__pools_walk(ctx, pool, &looks));) {
    if (device && pool->device != device) continue;
    const gm_stats one = gm__pool_stats(pool);
    gm__stats_add(&sum, &one);
  }
  gm__mutex_unlock(&ctx->lock);
  gm__sized_out(out, &sum, sizeof sum);
}

gm_status gm_device_stats(gm_device *device, gm_stats *out, gm_error *err) {
  GM__UNCANCELLED();
  gm_status status = gm__device_check(device, "gm_device_stats", err);
  if (!status) status = gm__sized_check(out, sizeof *out, "gm_device_stats", "out", err);
  if (status) return status;
  stats_add(device->ctx, device, out);
  return GM_OK;
}

gm_status gm_context_stats(gm_context *ctx, gm_stats *out, gm_error *err) {
  GM__UNCANCELLED();
  gm_status status = gm__context_check(ctx, "gm_context_stats", err);
  if (!status) status = gm__sized_check(out, sizeof *out, "gm_context_stats", "out", err);
  if (status) return status;
  stats_add(ctx, NULL, out);
  return GM_OK;
}

/* The pressure of a pool is what it handed out over what it may hold at most. Blocks that it keeps for reuse are free
 * to it. */

static gm_status stats_read_pressure(void *subject, _Atomic int *level, gm_pressure *out, gm_error *err) {
  gm_pool *pool = subject;
  const uint64_t limit = gm__heap_most(&pool->heap);
  if (limit == UINT64_MAX) {
    return gm__fail(err, GM_ERR_UNAVAILABLE, "gm_pool_pressure",
                    "pool \"%s\" has no cap and its device does not say what is free", pool->heap.provider.name);
  }
  const gm_stats stats = gm__heap_stats(&pool->heap);
  const gm_pressure_thresholds own = gm__keep_pressure(&pool->heap);
  const gm__pressure_ratio ratio = {.used_bytes = stats.in_use_bytes, .total_bytes = limit, .thresholds = &own};
  return gm__pressure_fill(pool->device->ctx, &ratio, level, out, err);
}

gm_status gm_pool_pressure(gm_pool *pool, gm_pressure *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pool_pressure";
  gm_status status = gm__pool_alive(pool, op, err);
  if (!status) status = gm__pressure_check(out, op, err);
  return status ? status : stats_read_pressure(pool, &pool->pressure, out, err);
}

gm_status gm_pressure_watch_pool(gm_pool *pool, gm_pressure_callback callback, void *user, gm_pressure_watch **out,
                                 gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pressure_watch_pool";
  const gm_status status = gm__pool_alive(pool, op, err);
  if (status) return status;
  const gm__watched what = {.scope = GM_PRESSURE_OF_POOL,
                            .ctx = pool->device->ctx,
                            .device = pool->device,
                            .subject = pool,
                            .guests = &pool->guests,
                            .read = stats_read_pressure,
                            .callback = callback,
                            .user = user};
  return gm__watch_begin(&what, op, out, err);
}
