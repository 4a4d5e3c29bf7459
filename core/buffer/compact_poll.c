#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/buffer/compact.h"
#include "core/context/config.h"
#include "core/pool/pool.h"

/* Invariant: a pool is pinned by its reclaimer while it is compacted, so it does not end meanwhile. A pool that lends
 * nothing, because it has an upstream, cannot be pinned so, and is refused. */

/* The next pool of the context that asked for it, with a pin, which moves on with each step. */
static gm_pool *poll_next(gm_context *ctx, gm_pool *from) {
  gm__mutex_lock(&ctx->lock);
  gm_pool *pool = from ? from->next : ctx->slots[GM__SLOT_POOLS];
  while (pool && (!atomic_load(&pool->buffers.polled) || !gm__reclaimer_pin(&pool->heap.reclaimer))) pool = pool->next;
  if (from) gm__reclaimer_unpin(&from->heap.reclaimer);
  gm__mutex_unlock(&ctx->lock);
  return pool;
}

/* Are the holes between live blocks worth it? Idle memory, which a trim gives back, is no hole. */
static bool poll_pays(gm_pool *pool) {
  const gm_stats stats = gm__heap_stats(&pool->heap);
  const uint64_t idle = gm__add_sat(stats.in_use_bytes, stats.reclaimable_bytes);
  const double holes = (double)gm__sub_sat(stats.reserved_bytes, idle);
  return holes > gm__config_fraction(pool->ctx, "coalescing_threshold") * (double)stats.reserved_bytes;
}

static void poll_compact(gm_context *ctx) {
  for (gm_pool *pool = NULL; (pool = poll_next(ctx, pool));) {
    gm_compact_report report;
    gm_compact_params params = {.struct_size = sizeof params};
    gm__mutex_lock(&pool->buffers.lock);
    params.max_bytes = pool->buffers.poll_bytes;
    params.max_ns = pool->buffers.poll_ns;
    gm__mutex_unlock(&pool->buffers.lock);
    if (poll_pays(pool)) gm__compact(pool, &params, UINT64_MAX, &report, NULL);
  }
}

gm_status gm_pool_compact_on_poll(gm_pool *pool, const gm_compact_params *params, gm_error *err) {
  static const char op[] = "gm_pool_compact_on_poll";
  gm_compact_params asked = {.struct_size = sizeof asked};
  gm_status status = gm__pool_alive(pool, op, err);
  if (!status && params) status = gm__sized_in(&asked, sizeof asked, params, op, "params", err);
  if (status) return status;
  if (asked.stream)
    return gm__bad_argument(err, op, "`params->stream` must be NULL: the stream may close before a poll");
  if (params && !gm__provider_lends(&pool->heap.provider)) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, op, "pool \"%s\" has an upstream, or keeps its memory for itself",
                    pool->heap.provider.name);
  }
  gm__mutex_lock(&pool->buffers.lock);
  pool->buffers.poll_bytes = asked.max_bytes;
  pool->buffers.poll_ns = asked.max_ns;
  atomic_store(&pool->buffers.polled, params != NULL);
  gm__mutex_unlock(&pool->buffers.lock);
  if (params) atomic_store(&pool->ctx->on_poll, poll_compact);
  return GM_OK;
}
