#include "core/buffer/idle.h"

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/saturate.h"
#include "core/buffer/buffer.h"

/* Invariants. Nobody tells the policy of a use, so that requests and frees cost nothing for it. A poll compares
 * counters with those of the poll before. The gate is held from that look to the end of the sleep, and gm_pool_wake
 * counts itself under the gate. So a wake comes before the look, and the pool stays awake, or it comes after the sleep,
 * and ends it. */

static uint64_t idle_count(const _Atomic uint64_t *counter) {
  return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Requests, frees and wakes so far. */
static uint64_t idle_uses(const gm_pool *pool) {
  gm_stats arenas = {.struct_size = sizeof arenas};
  const gm__stats *stats = &pool->heap.provider.stats;
  gm__arenas_add(&pool->heap.arenas, &arenas);
  return arenas.stream_hits + arenas.global_hits + arenas.misses + arenas.frees + idle_count(&stats->stream_hits) +
         idle_count(&stats->global_hits) + idle_count(&stats->misses) + idle_count(&stats->frees) +
         idle_count(&stats->failures) + idle_count(&stats->over_limit) + pool->idle.wakes;
}

/* The last lock, read or write of a buffer; UINT64_MAX: one is locked. */
static uint64_t idle_last_touch(gm_pool *pool) {
  uint64_t last = 0;
  gm__mutex_lock(&pool->buffers.lock);
  for (const gm_buffer *buffer = pool->buffers.first; buffer; buffer = buffer->next) {
    last = gm__max(last, buffer->locks ? UINT64_MAX : buffer->heat_at);
  }
  gm__mutex_unlock(&pool->buffers.lock);
  return last;
}

static void idle_restart(gm__pool_idle *idle, uint64_t now) {
  idle->trim_at = idle->trim_ns ? gm__add_sat(now, idle->trim_ns) : GM__NEVER;
  idle->sleep_at = idle->sleep_ns ? gm__add_sat(now, idle->sleep_ns) : GM__NEVER;
}

/* The time of a use since the last look; GM__NEVER: there was none. Buffers are asked only where something is due. */
static uint64_t idle_use_since(gm_pool *pool, uint64_t now) {
  gm__pool_idle *idle = &pool->idle;
  const uint64_t uses = idle_uses(pool);
  const bool used = uses != idle->uses;
  idle->uses = uses;
  if (used) return now;
  if (now < gm__min(idle->trim_at, idle->sleep_at)) return GM__NEVER;
  const uint64_t touch = idle_last_touch(pool);
  if (touch == UINT64_MAX) return now;
  const bool touched = touch != idle->touch;
  idle->touch = touch;
  return touched ? gm__min(touch, now) : GM__NEVER;
}

static void idle_sleep(gm_pool *pool, uint64_t now) {
  gm_error err = {.status = GM_OK};
  gm__pool_idle *idle = &pool->idle;
  const bool whole = idle->sleep >= GM_IDLE_SLEEP_WHOLE;
  const bool keep = idle->sleep == GM_IDLE_SLEEP_BUFFERS || idle->sleep == GM_IDLE_SLEEP_WHOLE;
  const gm_status status =
      whole ? gm_pool_sleep_whole(pool, keep, NULL, NULL, &err) : gm_pool_sleep(pool, keep, NULL, NULL, &err);
  idle->sleep_at = status ? gm__add_sat(now, idle->sleep_ns) : GM__NEVER;
  if (!status) idle->trim_at = GM__NEVER;
  if (status) {
    gm__log(gm__context_services(pool->ctx), GM_LOG_INFO, "pool \"%s\" is idle and stays awake: %s",
            pool->heap.provider.name, err.message);
  }
}

/* REQUIRES: gate. */
static void idle_look(gm_pool *pool) {
  const uint64_t now = gm__now_ns();
  gm__pool_idle *idle = &pool->idle;
  const uint64_t use = idle_use_since(pool, now);
  if (use != GM__NEVER) idle_restart(idle, use);
  if (now >= idle->sleep_at) {
    idle_sleep(pool, now);
    idle->uses = idle_uses(pool); /* buffers that left the device gave blocks back */
  } else if (now >= idle->trim_at) {
    gm_pool_trim(pool, 0);
    idle->trim_at = gm__add_sat(now, idle->trim_ns);
  }
}

void gm__idle_polled(gm_pool *pool) {
  if (!atomic_load(&pool->idle.on)) return;
  gm__mutex_lock(&pool->gate);
  if (atomic_load(&pool->idle.on)) idle_look(pool);
  gm__mutex_unlock(&pool->gate);
}

void gm__idle_set(gm_pool *pool, const gm_idle_params *params) {
  gm__pool_idle *idle = &pool->idle;
  gm__mutex_lock(&pool->gate);
  if (params) {
    idle->sleep = (int)params->sleep;
    idle->trim_ns = params->trim_ns;
    idle->sleep_ns = params->sleep_ns;
    idle->uses = idle_uses(pool);
    idle->touch = idle_last_touch(pool);
    idle_restart(idle, gm__now_ns());
  }
  atomic_store(&idle->on, params != NULL);
  gm__mutex_unlock(&pool->gate);
}
