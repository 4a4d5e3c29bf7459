#include "core/manage/lifecycle.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/block/share.h"
#include "core/context/config.h"
#include "core/context/process.h"
#include "core/device/turn.h"
#include "core/heap/heap_open.h"
#include "core/manage/fixed.h"
#include "core/manage/perf.h"
#include "core/manage/tracked.h"
#include "core/pool/spans.h"
#include "gm/config.h"

/* A pool's life. In a forked child a lock may be held by a thread that does not exist there. Every call looks at that
 * first, and destroy takes no lock. */

enum { POOL_MOST_ZONE = 1024 * 1024 };

/* The strategy that the parameters ask for, or that of the configuration where they leave it open. */
static gm_strategy pool_strategy(gm_context *ctx, gm_strategy asked) {
  char word[16];
  if (asked == GM_STRATEGY_FIXED) return GM_STRATEGY_BEST_FIT;
  if (asked != GM_STRATEGY_AUTO) return asked;
  gm__config_text(ctx, "allocation_strategy", word, sizeof word);
  return strcmp(word, "bucket") == 0 ? GM_STRATEGY_BUCKET : GM_STRATEGY_BEST_FIT;
}

static gm_status pool_check_params(const gm_pool_params *params, gm_error *err) {
  const char *op = "gm_pool_create";
  if ((unsigned)params->strategy > GM_STRATEGY_FIXED) {
    return gm__bad_argument(err, op, "`params->strategy` is %u, none of gm_strategy", (unsigned)params->strategy);
  }
  if (params->debug & ~(uint32_t)(GM_DEBUG_POISON | GM_DEBUG_CHECK_FREED)) {
    return gm__bad_argument(err, op, "`params->debug` has unknown bits: 0x%x", params->debug);
  }
  if (params->red_zone_bytes > POOL_MOST_ZONE && params->red_zone_bytes != GM_NO_BYTES) {
    return gm__bad_argument(err, op, "`params->red_zone_bytes` is %" PRIu64 ", must be at most %d",
                            params->red_zone_bytes, POOL_MOST_ZONE);
  }
  if (params->upstream && (params->upstream->reserved[0] || params->upstream->reserved[1])) {
    return gm__bad_argument(err, op, "`params->upstream->reserved` must be NULL");
  }
  if (params->upstream && (!params->upstream->allocate || !params->upstream->release)) {
    return gm__bad_argument(err, op, "`params->upstream` needs both allocate and release");
  }
  return GM_OK;
}

static gm_status pool_check_limits(const gm_pool_params *params, gm_error *err) {
  const char *op = "gm_pool_create";
  if (!(params->memory_fraction >= 0 && params->memory_fraction <= 1)) {
    return gm__bad_argument(err, op, "`params->memory_fraction` is not within 0 and 1");
  }
  const uint64_t fixed = params->strategy == GM_STRATEGY_FIXED ? GM_POOL_TAKE_LARGER | GM_POOL_PASS_LARGER : 0;
  if (params->flags & ~(GM_POOL_NO_TRIM | GM_POOL_CAPTURES | fixed)) {
    return gm__bad_argument(err, op, "`params->flags` has unknown bits: 0x%" PRIx64, params->flags);
  }
  if (params->flags && params->keep_bytes && params->keep_bytes != GM_NO_LIMIT) {
    return gm__bad_argument(err, op, "`params->flags` forbid what `params->keep_bytes` asks for");
  }
  return GM_OK;
}

/* The heap checks whether any memory is as wished. */
static gm_status pool_check_wishes(const gm_pool_params *params, gm_error *err) {
  const char *op = "gm_pool_create";
  const uint32_t usages =
      GM_USAGE_TRANSFER | GM_USAGE_STORAGE | GM_USAGE_UNIFORM | GM_USAGE_INDIRECT | GM_USAGE_READBACK;
  if ((unsigned)params->must_be > GM_ANYWHERE) {
    return gm__bad_argument(err, op, "`params->must_be` is %u, none of gm_must_be", (unsigned)params->must_be);
  }
  if (params->usage & ~usages) {
    return gm__bad_argument(err, op, "`params->usage` has unknown bits: 0x%x", params->usage & ~usages);
  }
  if (!(params->priority >= 0 && params->priority <= 1)) {
    return gm__bad_argument(err, op, "`params->priority` is not within 0 and 1");
  }
  return GM_OK;
}

uint64_t gm__pool_cap(gm_context *ctx, uint64_t asked) {
  if (asked == GM_NO_BYTES) return 0;
  uint64_t cap = asked ? asked : gm__config_u64(ctx, "max_pool_bytes");
  return cap ? cap : UINT64_MAX;
}

static bool pool_is_checked(const gm_pool_params *params) {
#ifdef NDEBUG
  return params->checked;
#else
  (void)params;
  return true;
#endif
}

static bool pool_reap(void *guard) { return gm__guard_reap(guard, true); }

static gm_status pool_init_heap(gm_pool *pool, gm_device *device, const gm_pool_params *params, gm_error *err) {
  gm_context *ctx = device->ctx;
  gm__heap_params heap = {.pool = params,
                          .strategy = pool_strategy(ctx, params->strategy),
                          .checked = pool_is_checked(params),
                          .guarded = pool->guard != NULL,
                          .class_bits = (uint32_t)gm__config_u64(ctx, "size_class_bits"),
                          .max_bytes = gm__pool_cap(ctx, params->max_bytes),
                          .owner = pool,
                          .reap = pool->guard ? pool_reap : NULL,
                          .guard = pool->guard};
  gm__fixed_read(pool, device, params, &heap.fixed);
  return gm__heap_init(&pool->heap, device, &heap, err);
}

static gm_status pool_init(gm_pool *pool, gm_device *device, const gm_pool_params *params, gm_error *err) {
  gm_context *ctx = device->ctx;
  pool->device = device;
  pool->ctx = ctx;
  gm_status status = gm__guard_create(&pool->heap, device, params, gm__profiler_of(ctx), &pool->guard, err);
  if (status) return status;
  gm__mutex_init(&pool->gate, GM__RANK_GATE);
  gm__map_init(&pool->spans, gm__context_services(ctx));
  pool->generation = ctx->generation;
  pool->generation_at = gm__process_generation_at();
  status = pool_init_heap(pool, device, params, err);
  pool->fast_key = pool->heap.arenas.serial;
  if (status) return status;
  if (!params->track && !gm__config_bool(ctx, "track_allocations")) return GM_OK;
  status = gm__tracked_begin(pool, ctx, err);
  pool->heap.observers.track_turns = !status;
  return status;
}

/* Gives back all that the pool has, of which no thread can see anything. */
static void pool_clear(gm_pool *pool, bool forked) {
  gm__guard_end(pool->guard, forked);
  gm__spans_end(pool);
  gm__perf_clear(pool);
  gm__heap_clear(&pool->heap, forked);
  if (!forked) gm__mutex_destroy(&pool->gate);
}

/* Buffers outlive a pool that was ended by force, so this belongs to its object. */
static void pool_end_buffers(gm_pool *pool) {
  gm__mutex_destroy(&pool->buffers.lock);
  gm__cond_destroy(&pool->buffers.changed);
}

gm_status gm_pool_create(gm_device *device, const gm_pool_params *params, gm_pool **out, gm_error *err) {
  GM__UNCANCELLED();
  gm_pool_params asked = {.struct_size = sizeof asked};
  gm_status status = gm__device_check(device, "gm_pool_create", err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, "gm_pool_create", "`out` is NULL");
  if (params) status = gm__sized_in(&asked, sizeof asked, params, "gm_pool_create", "params", err);
  if (asked.strategy == GM_STRATEGY_FIXED) asked.flags |= GM_POOL_NO_TRIM;
  if (!status) status = pool_check_params(&asked, err);
  if (!status) status = gm__fixed_check(&asked, err);
  if (!status) status = pool_check_limits(&asked, err);
  if (!status) status = pool_check_wishes(&asked, err);
  if (!status) status = gm__share_check_pool(device, &asked, err);
  if (status) return status;
  gm_pool *pool = gm__object_new(device->ctx, GM__KIND_POOL, sizeof *pool);
  if (!pool) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_pool_create", "no host memory for a pool");
  gm__mutex_init(&pool->buffers.lock, GM__RANK_SCOPE);
  gm__cond_init(&pool->buffers.changed);
  status = pool_init(pool, device, &asked, err);
  if (status) {
    if (pool->generation_at) pool_clear(pool, false);
    pool_end_buffers(pool);
    gm__object_end(device->ctx, &pool->head);
    return status;
  }
  atomic_fetch_add(&device->children, 1);
  gm__pool_listen(pool);
  gm__device_add_listener(device, &pool->listener);
  gm__pool_enlist(pool);
  gm__heap_open(&pool->heap);
  status = gm__fixed_take(pool, &asked, err);
  if (status) {
    gm_pool_destroy(pool, NULL); /* nobody knows of it yet */
    return status;
  }
  gm__warm_up_by_configuration(pool);
  *out = pool;
  return GM_OK;
}

uint64_t gm__pool_live(gm_pool *pool) {
  if (!gm__pool_lives(pool) || gm__pool_forked(pool)) return 0;
  if (pool->guard) gm__guard_reap(pool->guard, true);
  return gm__heap_live(&pool->heap);
}

/* Is the pool still in use? A forked child is not asked: it has only a copy of the pool. */
static gm_status pool_check_unused(gm_pool *pool, gm_error *err) {
  static const char op[] = "gm_pool_destroy";
  const char *name = pool->heap.provider.name;
  const uint64_t live = gm__pool_live(pool);
  const uint32_t guests = atomic_load(&pool->guests);
  if (live) {
    return gm__fail(err, GM_ERR_BUSY, op, "%" PRIu64 " blocks of pool \"%s\" are still out", live, name);
  }
  if (gm__recorder_writes(pool->heap.observers.recorder)) {
    return gm__fail(err, GM_ERR_BUSY, op, "pool \"%s\" is being recorded: gm_pool_record_end first", name);
  }
  if (guests) {
    return gm__fail(err, GM_ERR_BUSY, op,
                    "%u buffers, scopes, caches, reservations or watches of pool \"%s\" are alive", guests, name);
  }
  if (gm__turns_wait_at(pool->device, pool)) {
    return gm__fail(err, GM_ERR_BUSY, op, "a request of another thread, or a future, waits for memory of pool \"%s\"",
                    name);
  }
  const gm_status status = gm__heap_drain(&pool->heap, op, err);
  return status ? status : gm__pool_stop_lending(pool, op, err);
}

gm_status gm__pool_stop_lending(gm_pool *pool, const char *op, gm_error *err) {
  if (gm__heap_close(&pool->heap)) return GM_OK;
  return gm__fail(err, GM_ERR_BUSY, op,
                  "another pool asks pool \"%s\" for memory, and its thread is in the driver: destroy it later",
                  pool->heap.provider.name);
}

void gm__pool_end(gm_pool *pool, bool forked) {
  gm_device *device = pool->device;
  gm_evictor_unregister(pool->buffers.rung, NULL);
  if (pool->buffers.forget && !forked) pool->buffers.forget(pool);
  if (!forked) {
    gm__pool_delist(pool);
    gm__device_remove_listener(device, &pool->listener);
  }
  pool_clear(pool, forked);
  atomic_fetch_sub(&device->children, 1);
}

gm_status gm_pool_destroy(gm_pool *pool, gm_error *err) {
  GM__UNCANCELLED();
  if (!pool) return GM_OK;
  if (!gm__pool_lives(pool)) return gm__bad_argument(err, "gm_pool_destroy", "`pool` is destroyed");
  const bool forked = gm__pool_forked(pool);
  const gm_status status = forked ? GM_OK : pool_check_unused(pool, err);
  if (status) return status;
  gm__pool_end(pool, forked);
  if (!forked) pool_end_buffers(pool);
  gm__object_end(pool->ctx, &pool->head);
  return GM_OK;
}
