#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/poll.h"
#include "core/base/sized.h"
#include "core/pool/pool.h"

/* Sums over pools. Invariant: under the context's lock its slot for pools is the first of a list of every pool that is
 * alive. Nothing is added up before somebody asks, so the allocating paths pay nothing for it. */

static const uint64_t totals_patience_ns = 1000000000;

void gm__pool_enlist(gm_pool *pool) {
  gm_context *ctx = pool->device->ctx;
  gm__mutex_lock(&ctx->lock);
  pool->next = ctx->slots[GM__SLOT_POOLS];
  if (pool->next) pool->next->prev = pool;
  ctx->slots[GM__SLOT_POOLS] = pool;
  gm__mutex_unlock(&ctx->lock);
}

static void totals_unlink(gm_context *ctx, gm_pool *pool) {
  if (pool->next) pool->next->prev = pool->prev;
  if (pool->prev) {
    pool->prev->next = pool->next;
  } else {
    ctx->slots[GM__SLOT_POOLS] = pool->next;
  }
}

static bool totals_delist(gm_pool *pool) {
  gm_context *ctx = pool->device->ctx;
  gm__mutex_lock(&ctx->lock);
  const bool free = !pool->pins;
  if (free) totals_unlink(ctx, pool);
  gm__mutex_unlock(&ctx->lock);
  return free;
}

bool gm__pool_delist(gm_pool *pool) {
  for (gm__poll poll = gm__poll_until(gm__deadline_after(totals_patience_ns));;) {
    if (totals_delist(pool)) return true;
    if (!gm__poll_again(&poll)) return false;
  }
}
/* `device` NULL: of all. */
static void totals_add(gm_context *ctx, const gm_device *device, gm_stats *out) {
  gm_stats sum = {.struct_size = sizeof sum};
  gm__mutex_lock(&ctx->lock);
  for (gm_pool *pool = ctx->slots[GM__SLOT_POOLS]; pool; pool = pool->next) {
    if (device && pool->device != device) continue;
    const gm_stats one = gm__pool_stats(pool);
    gm__stats_add(&sum, &one);
  }
  gm__mutex_unlock(&ctx->lock);
  gm__sized_out(out, &sum, sizeof sum);
}

gm_status gm_device_stats(gm_device *device, gm_stats *out, gm_error *err) {
  gm_status status = gm__device_check(device, "gm_device_stats", err);
  if (!status) status = gm__sized_check(out, sizeof *out, "gm_device_stats", "out", err);
  if (status) return status;
  totals_add(device->ctx, device, out);
  return GM_OK;
}

gm_status gm_context_stats(gm_context *ctx, gm_stats *out, gm_error *err) {
  gm_status status = gm__context_check(ctx, "gm_context_stats", err);
  if (!status) status = gm__sized_check(out, sizeof *out, "gm_context_stats", "out", err);
  if (status) return status;
  totals_add(ctx, NULL, out);
  return GM_OK;
}
