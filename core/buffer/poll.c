#include "core/buffer/poll.h"

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/buffer/idle.h"
#include "gm/relocation.h"

/* Invariant: a pool is pinned by its reclaimer while a poll works on it, so it does not end meanwhile. A pool that
 * lends nothing, because it has an upstream, cannot be pinned so, and is refused. */

static bool poll_is_asked(gm_pool *pool) {
  return atomic_load(&pool->buffers.compacts) || atomic_load(&pool->buffers.promotes) || atomic_load(&pool->idle.on);
}

/* The next pool of the context that asked for it, with a pin, which moves on with each step. */
static gm_pool *poll_next(gm_context *ctx, gm_pool *from) {
  gm__mutex_lock(&ctx->lock);
  gm_pool *pool = from ? from->next : ctx->slots[GM__SLOT_POOLS];
  while (pool && (!poll_is_asked(pool) || !gm__reclaimer_pin(&pool->heap.reclaimer))) pool = pool->next;
  if (from) gm__reclaimer_unpin(&from->heap.reclaimer);
  gm__mutex_unlock(&ctx->lock);
  return pool;
}

/* Joined holes make room for what comes back. */
static void poll_all(gm_context *ctx) {
  for (gm_pool *pool = NULL; (pool = poll_next(ctx, pool));) {
    gm__compact_polled(pool);
    gm__promote_polled(pool);
    gm__idle_polled(pool);
  }
}

static gm_status poll_check(const gm_pool *pool, bool on, const gm_stream *stream, const char *op, gm_error *err) {
  if (stream) {
    return gm__bad_argument(err, op, "`params->stream` must be NULL: the stream may close before a poll");
  }
  if (!on || gm__provider_lends(&pool->heap.provider)) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "pool \"%s\" has an upstream, or keeps its memory for itself",
                  pool->heap.provider.name);
}

gm_status gm_pool_compact_on_poll(gm_pool *pool, const gm_compact_params *params, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pool_compact_on_poll";
  gm_compact_params asked = {.struct_size = sizeof asked};
  gm_status status = gm__pool_alive(pool, op, err);
  if (!status && params) status = gm__sized_in(&asked, sizeof asked, params, op, "params", err);
  if (!status) status = poll_check(pool, params != NULL, asked.stream, op, err);
  if (status) return status;
  gm__mutex_lock(&pool->buffers.lock);
  pool->buffers.compact_bytes = asked.max_bytes;
  pool->buffers.compact_ns = asked.max_ns;
  atomic_store(&pool->buffers.compacts, params != NULL);
  gm__mutex_unlock(&pool->buffers.lock);
  atomic_store(&pool->ctx->on_poll, poll_all);
  return GM_OK;
}

gm_status gm_pool_promote_on_poll(gm_pool *pool, const gm_promote_params *params, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pool_promote_on_poll";
  gm_promote_params asked = {.struct_size = sizeof asked};
  gm_status status = gm__pool_alive(pool, op, err);
  if (!status && params) status = gm__sized_in(&asked, sizeof asked, params, op, "params", err);
  if (!status) status = poll_check(pool, params != NULL, asked.stream, op, err);
  if (status) return status;
  gm__mutex_lock(&pool->buffers.lock);
  pool->buffers.promote_bytes = asked.max_bytes;
  pool->buffers.promote_wait_ns = asked.wait_ns;
  atomic_store(&pool->buffers.promotes, params != NULL);
  gm__mutex_unlock(&pool->buffers.lock);
  atomic_store(&pool->ctx->on_poll, poll_all);
  return GM_OK;
}

static gm_status poll_check_idle(const gm_pool *pool, const gm_idle_params *asked, const char *op, gm_error *err) {
  if ((unsigned)asked->sleep > GM_IDLE_SLEEP_WHOLE_DROPPED) {
    return gm__bad_argument(err, op, "`params->sleep` is %u, none of gm_idle_sleep", (unsigned)asked->sleep);
  }
  if (!asked->trim_ns && !asked->sleep_ns) {
    return gm__bad_argument(err, op, "`params->trim_ns` and `params->sleep_ns` are 0");
  }
  if ((asked->sleep_ns == 0) != (asked->sleep == GM_IDLE_NO_SLEEP)) {
    return gm__bad_argument(err, op, "`params->sleep_ns` and `params->sleep` contradict each other");
  }
  const bool pages = pool->heap.provider.pages.usable && !(pool->guard && gm__guard_writes(pool->guard));
  if (asked->sleep < GM_IDLE_SLEEP_WHOLE || pages) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "pool \"%s\" cannot sleep as a whole: gm_pool_sleep_whole says why",
                  pool->heap.provider.name);
}

gm_status gm_pool_idle_on_poll(gm_pool *pool, const gm_idle_params *params, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pool_idle_on_poll";
  gm_idle_params asked = {.struct_size = sizeof asked};
  gm_status status = gm__pool_alive(pool, op, err);
  if (!status && params) status = gm__sized_in(&asked, sizeof asked, params, op, "params", err);
  if (!status && params) status = poll_check_idle(pool, &asked, op, err);
  if (!status) status = poll_check(pool, params != NULL, NULL, op, err);
  if (status) return status;
  gm__idle_set(pool, params ? &asked : NULL);
  atomic_store(&pool->ctx->on_poll, poll_all);
  return GM_OK;
}
