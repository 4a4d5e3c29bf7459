#include "core/pool/pool.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/pool/entry.h"
#include "core/pool/growth.h"
#include "core/pool/hole.h"
#include "core/pool/quota.h"
#include "core/pool/share.h"
#include "core/pool/spanned.h"
#include "core/pool/supply.h"
#include "core/pool/tracked.h"
#include "core/pool/warm_up.h"
#include "gm/config.h"

/* A pool: one mutex over the tables, arenas with locks of their own, atomics for figures and limits. Invariants:
 * claimed >= reserved >= in use; the backend, the user's upstream and the tracker are never called to allocate, free or
 * submit with the lock held (core/pool/order.h). In a forked child the lock may be held by a thread that is not there:
 * every call looks at that first, and destroy takes no lock. */

enum {
  POOL_MOST_ZONE = 1024 * 1024,
  POOL_SMALL_PAGES = 16,   /* what quick lists keep costs addresses first: they are emptied before a page is made */
  POOL_SMALL_SEGMENTS = 64 /* where pages cannot be moved together a kept block lies in the way of a larger hole */
};

gm_status gm__pool_check(const gm_pool *pool, const char *op, gm_error *err) {
  if (!pool) return gm__bad_argument(err, op, "`pool` is NULL");
  if (!gm__pool_is(pool)) return gm__bad_argument(err, op, "`pool` is destroyed");
  return gm__device_check(pool->device, op, err);
}

static void pool_take_lock(void *lock) { gm__mutex_lock(lock); }

static void pool_leave_lock(void *lock) { gm__mutex_unlock(lock); }

/* That of the parameters, or of the configuration where they leave it open. */
static gm_strategy pool_strategy(gm_context *ctx, gm_strategy asked) {
  char word[16];
  if (asked != GM_STRATEGY_AUTO) return asked;
  gm__config_text(ctx, "allocation_strategy", word, sizeof word);
  return strcmp(word, "bucket") == 0 ? GM_STRATEGY_BUCKET : GM_STRATEGY_BEST_FIT;
}

static gm_status pool_check_params(const gm_pool_params *params, gm_error *err) {
  const char *op = "gm_pool_create";
  if ((unsigned)params->strategy > GM_STRATEGY_BEST_FIT) {
    return gm__bad_argument(err, op, "`params->strategy` is %u, none of gm_strategy", (unsigned)params->strategy);
  }
  if (params->debug & ~(uint32_t)(GM_DEBUG_POISON | GM_DEBUG_CHECK_FREED)) {
    return gm__bad_argument(err, op, "`params->debug` has bits that are none: 0x%x", params->debug);
  }
  if (params->red_zone_bytes > POOL_MOST_ZONE) {
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

static uint64_t pool_cap(gm_context *ctx, uint64_t asked) {
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

static void pool_init_arenas(gm_pool *pool, gm_device *device, const gm_pool_params *params) {
  static _Atomic uint64_t last_serial;
  const gm__want plain = {.usage = GM_USAGE_TRANSFER | GM_USAGE_STORAGE};
  gm__segment_rules_init(&pool->rules, device);
  pool->rules.size = gm__config_u64(device->ctx, "segment_size");
  pool->rules.zeroes = gm__config_bool(device->ctx, "zero_segments");
  pool->main_kind = gm__kind_of(&pool->rules, &plain);
  gm__pages_init(pool, pool->strategy == GM_STRATEGY_BEST_FIT && !params->no_vmm && !params->upstream &&
                           !params->share && pool->rules.size == UINT64_MAX);
  const uint64_t small = gm__config_u64(device->ctx, "small_block_threshold");
  pool->rules.small = pool->pages.usable ? gm__mul_sat(small, POOL_SMALL_PAGES) : small / POOL_SMALL_SEGMENTS;
  pool->serial = atomic_fetch_add(&last_serial, 1) + 1;
  pool->generation = device->ctx->generation;
  pool->generation_at = gm__process_generation_at();
  const bool fast = pool->strategy == GM_STRATEGY_BEST_FIT && !pool->guard;
  pool->fast_key = fast ? pool->serial : GM__HERE_NOBODY;
}

static void pool_init(gm_pool *pool, gm_device *device, const gm_pool_params *params) {
  gm_context *ctx = device->ctx;
  uint64_t most = gm__config_u64(ctx, "max_pooled_per_bucket");
  pool->device = device;
  pool->id = gm__context_next_id(ctx);
  snprintf(pool->name, sizeof pool->name, "%s", params->name ? params->name : "pool");
  pool->strategy = pool_strategy(ctx, params->strategy);
  pool->checked = pool_is_checked(params);
  pool->has_upstream = params->upstream != NULL;
  pool->share = params->share;
  if (params->upstream) pool->upstream = *params->upstream;
  pool->max_bytes = pool_cap(ctx, params->max_bytes);
  gm__mutex_init(&pool->lock, GM__RANK_POOL);
  gm__mutex_init(&pool->gate, GM__RANK_GATE);
  gm__node_table_init(&pool->nodes, gm__context_services(ctx), pool->id);
  gm__cache_init(pool);
  gm__pointers_init(&pool->pointers, gm__context_services(ctx));
  gm__map_init(&pool->spanned, gm__context_services(ctx));
  pool_init_arenas(pool, device, params);
  pool->buckets.most = most < UINT32_MAX ? (uint32_t)most : UINT32_MAX;
  gm__order_init(&pool->order, device, &(gm__order_lock){pool_take_lock, pool_leave_lock, &pool->lock});
  gm__pool_listen(pool);
}

/* Of buckets: powers of two where the program asks for buckets by name and nobody has set the key. */
static uint32_t pool_class_bits(gm_context *ctx, gm_strategy asked) {
  static const char key[] = "size_class_bits";
  char text[16];
  gm_config_source source = GM_CONFIG_DEFAULT;
  if (pool_strategy(ctx, asked) != GM_STRATEGY_BUCKET) return 0;
  gm_config_get(ctx, key, text, sizeof text, &source, NULL);
  if (asked == GM_STRATEGY_BUCKET && source == GM_CONFIG_DEFAULT) return 0;
  return (uint32_t)gm__config_u64(ctx, key);
}

/* What takes host memory, or what only some pools have. */
static gm_status pool_equip(gm_pool *pool, gm_device *device, const gm_pool_params *params, gm_error *err) {
  bool track = params->track || gm__config_bool(device->ctx, "track_allocations");
  const gm_services *services = gm__context_services(device->ctx);
  if (!gm__buckets_init(&pool->buckets, services, pool_class_bits(device->ctx, params->strategy))) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_pool_create", "no host memory for a pool");
  }
  gm_status status = track ? gm__tracked_begin(pool, device->ctx, err) : GM_OK;
  pool->track_turns = track && !status;
  pool->marks = gm__marks_of(device->ctx);
  if (!status) status = gm__guard_create(device, params, pool->marks, &pool->guard, err);
  if (status) {
    gm_tracker_destroy(pool->tracker);
    gm__buckets_clear(&pool->buckets, services);
  }
  return status;
}

gm_status gm_pool_create(gm_device *device, const gm_pool_params *params, gm_pool **out, gm_error *err) {
  gm_pool_params asked = {.struct_size = sizeof asked};
  gm_status status = gm__device_check(device, "gm_pool_create", err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, "gm_pool_create", "`out` is NULL");
  if (params) status = gm__sized_in(&asked, sizeof asked, params, "gm_pool_create", "params", err);
  if (!status) status = pool_check_params(&asked, err);
  if (!status) status = gm__share_check_pool(device, &asked, err);
  if (status) return status;
  gm_pool *pool = gm__object_new(device->ctx, GM__KIND_POOL, sizeof *pool);
  if (!pool) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_pool_create", "no host memory for a pool");
  status = pool_equip(pool, device, &asked, err);
  if (status) {
    gm__object_end(device->ctx, &pool->head);
    return status;
  }
  pool_init(pool, device, &asked);
  atomic_fetch_add(&device->children, 1);
  gm__device_add_listener(device, &pool->listener);
  gm__pool_enlist(pool);
  gm__warm_up_by_configuration(pool);
  *out = pool;
  return GM_OK;
}

static gm_status pool_drain(gm_pool *pool, gm_error *err) {
  static const char op[] = "gm_pool_destroy";
  gm__arena *arena;
  gm__mutex_lock(&pool->lock);
  gm_status status = gm__order_drain_all(&pool->order, op, err);
  gm__mutex_unlock(&pool->lock);
  for (uint32_t i = 0; !status && (arena = gm__arena_at(pool, i)); i++) {
    gm__arena_lock(arena);
    status = gm__order_drain_all(&arena->order, op, err);
    gm__arena_unlock(arena);
  }
  return status;
}

/* The device's figures forget what the arenas could have given back. */
static void pool_unpublish(gm_pool *pool) {
  gm__arena *arena;
  for (uint32_t i = 0; (arena = gm__arena_at(pool, i)); i++) {
    if (arena->noted) gm__device_note_pooled(pool->device, -(int64_t)arena->noted);
  }
}

uint64_t gm__pool_live(gm_pool *pool) {
  gm_stats stats = {.struct_size = sizeof stats};
  if (gm__pool_forked(pool)) return 0;
  if (pool->guard) gm__guard_reap(pool, true);
  gm__arenas_add(pool, &stats);
  return pool->live + stats.stream_hits + stats.global_hits + stats.misses - stats.frees;
}

static void pool_clear_points(gm_pool *pool, gm_close_mode mode) {
  uint32_t cursor = 0;
  for (gm__node *node; (node = gm__node_next(&pool->nodes, &cursor));) {
    gm__order_clear_mark(&pool->order, &node->rare.mark, mode);
  }
  gm__order_clear(&pool->order, mode);
}

gm_status gm_pool_destroy(gm_pool *pool, gm_error *err) {
  if (!pool) return GM_OK;
  if (!gm__pool_is(pool)) return gm__bad_argument(err, "gm_pool_destroy", "`pool` is destroyed");
  gm_device *device = pool->device;
  bool forked = gm__pool_forked(pool);
  uint64_t live = gm__pool_live(pool);
  if (live) {
    return gm__fail(err, GM_ERR_BUSY, 0, "gm_pool_destroy", "%" PRIu64 " blocks of pool \"%s\" are still out", live,
                    pool->name);
  }
  if (!forked && pool->recorder) {
    return gm__fail(err, GM_ERR_BUSY, 0, "gm_pool_destroy", "pool \"%s\" is being recorded: gm_pool_record_end first",
                    pool->name);
  }
  uint32_t guests = atomic_load(&pool->guests);
  if (!forked && guests) {
    return gm__fail(err, GM_ERR_BUSY, 0, "gm_pool_destroy", "%u buffers or scopes of pool \"%s\" are alive", guests,
                    pool->name);
  }
  const gm_status drained = forked ? GM_OK : pool_drain(pool, err);
  if (drained) return drained;
  if (!forked && !gm__pool_delist(pool)) {
    return gm__fail(err, GM_ERR_BUSY, 0, "gm_pool_destroy",
                    "another pool asks pool \"%s\" for memory, and its thread is in the driver: destroy it later",
                    pool->name);
  }
  if (!forked) {
    pool_unpublish(pool);
    gm__device_remove_listener(device, &pool->listener);
  }
  pool_clear_points(pool, forked ? GM_CLOSE_ABANDON : GM_CLOSE_NORMAL);
  gm__guard_end(pool, forked);
  gm__supply_end(pool);
  gm__arenas_clear(pool, forked ? GM_CLOSE_ABANDON : GM_CLOSE_NORMAL);
  gm__pages_clear(pool, forked ? GM_CLOSE_ABANDON : GM_CLOSE_NORMAL);
  gm__quotas_end(pool, forked);
  gm_tracker_destroy(pool->tracker);
  gm__recorder_close(pool->recorder, forked);
  gm__pointers_clear(&pool->pointers);
  gm__spanned_end(pool);
  gm__node_table_clear(&pool->nodes);
  gm__buckets_clear(&pool->buckets, gm__context_services(device->ctx));
  if (!forked) gm__cache_end(pool);
  if (!forked) gm__mutex_destroy(&pool->lock);
  if (!forked) gm__mutex_destroy(&pool->gate);
  gm__object_end(device->ctx, &pool->head);
  atomic_fetch_sub(&device->children, 1);
  return GM_OK;
}

gm_status gm__pool_claim(gm_pool *pool, uint64_t bytes, const char *op, gm_error *err) {
  uint64_t cap = atomic_load_explicit(&pool->max_bytes, memory_order_relaxed);
  uint64_t claimed = atomic_load_explicit(&pool->claimed, memory_order_relaxed);
  do {
    if (claimed > cap || bytes > cap - claimed) {
      return gm__fail(err, GM_ERR_OVER_LIMIT, 0, op,
                      "%" PRIu64 " bytes more would go beyond the cap of pool \"%s\": %" PRIu64 " of %" PRIu64
                      " are taken",
                      bytes, pool->name, claimed, cap);
    }
  } while (!atomic_compare_exchange_weak_explicit(&pool->claimed, &claimed, claimed + bytes, memory_order_relaxed,
                                                  memory_order_relaxed));
  return GM_OK;
}

void gm__pool_unclaim(gm_pool *pool, uint64_t bytes) {
  atomic_fetch_sub_explicit(&pool->claimed, bytes, memory_order_relaxed);
}

uint64_t gm__pool_limit(gm_pool *pool) {
  uint64_t cap = atomic_load_explicit(&pool->max_bytes, memory_order_relaxed);
  if (pool->has_upstream) return cap;
  uint64_t room = gm__device_room(pool->device, true);
  uint64_t claimed = atomic_load_explicit(&pool->claimed, memory_order_relaxed);
  if (room > UINT64_MAX - claimed) return cap;
  return claimed + room < cap ? claimed + room : cap;
}

void gm__pool_note_failure(gm_pool *pool, const gm_error *failure) {
  gm__mutex_lock(&pool->lock);
  pool->last_failure = *failure;
  gm__mutex_unlock(&pool->lock);
}

uint64_t gm__pool_pooled(gm_pool *pool) {
  gm_stats stats = {.struct_size = sizeof stats};
  gm__arenas_add(pool, &stats);
  const uint64_t reserved = atomic_load_explicit(&pool->stats.reserved_bytes, memory_order_relaxed);
  const uint64_t in_use = atomic_load_explicit(&pool->stats.in_use_bytes, memory_order_relaxed);
  return gm__sub_sat(reserved, in_use + stats.in_use_bytes);
}

gm_location gm__pool_location(const gm_pool *pool, const gm_memory *memory) {
  const gm_device *device = pool->device;
  uint32_t flags = memory->type < device->type_count ? device->types[memory->type].flags : 0;
  bool pinned = flags & GM_MEMORY_PINNED && !(flags & GM_MEMORY_DEVICE_LOCAL);
  return pinned || !gm__device_is_charged(device, memory) ? GM_LOCATION_PINNED : GM_LOCATION_DEVICE;
}

uint64_t gm_pool_trim(gm_pool *pool, uint64_t keep_bytes) {
  return !gm__pool_is(pool) || gm__pool_forked(pool) ? 0 : gm__supply_trim(pool, keep_bytes, UINT64_MAX);
}

gm_status gm_pool_set_max_bytes(gm_pool *pool, uint64_t bytes, gm_error *err) {
  gm_status status = gm__pool_check(pool, "gm_pool_set_max_bytes", err);
  if (status) return status;
  atomic_store_explicit(&pool->max_bytes, pool_cap(pool->device->ctx, bytes), memory_order_relaxed);
  return GM_OK;
}

static gm_status pool_record_more(gm_pool *pool, uint64_t bytes, gm_error *err) {
  gm_status status = gm__pool_claim(pool, bytes, "gm_pool_record_allocation", err);
  if (status) return status;
  atomic_fetch_add_explicit(&pool->recorded, bytes, memory_order_relaxed);
  gm__stats_grow(&pool->stats.reserved_bytes, &pool->stats.peak_reserved_bytes, bytes);
  gm__stats_grow(&pool->stats.in_use_bytes, &pool->stats.peak_in_use_bytes, bytes);
  gm__stats_grow(&pool->stats.requested_bytes, &pool->stats.peak_requested_bytes, bytes);
  return GM_OK;
}

static gm_status pool_record_less(gm_pool *pool, uint64_t bytes, gm_error *err) {
  uint64_t recorded = atomic_load_explicit(&pool->recorded, memory_order_relaxed);
  do {
    if (bytes > recorded) {
      return gm__bad_argument(err, "gm_pool_record_allocation",
                              "`bytes` gives back %" PRIu64 ", but only %" PRIu64 " are recorded", bytes, recorded);
    }
  } while (!atomic_compare_exchange_weak_explicit(&pool->recorded, &recorded, recorded - bytes, memory_order_relaxed,
                                                  memory_order_relaxed));
  gm__stats_uncount(&pool->stats.requested_bytes, bytes);
  gm__stats_uncount(&pool->stats.in_use_bytes, bytes);
  gm__stats_uncount(&pool->stats.reserved_bytes, bytes);
  gm__pool_unclaim(pool, bytes);
  return GM_OK;
}

gm_status gm_pool_record_allocation(gm_pool *pool, int64_t bytes, gm_error *err) {
  gm_status status = gm__pool_check(pool, "gm_pool_record_allocation", err);
  if (status || bytes == 0) return status;
  return bytes > 0 ? pool_record_more(pool, (uint64_t)bytes, err)
                   : pool_record_less(pool, (uint64_t)0 - (uint64_t)bytes, err);
}

gm_stats gm__pool_stats(gm_pool *pool) {
  gm_stats arenas = {.struct_size = sizeof arenas}, stats;
  if (!gm__pool_forked(pool)) gm__arenas_look(pool);
  gm__arenas_add(pool, &arenas);
  gm__stats_snapshot(&pool->stats, &arenas, &stats);
  return stats;
}

gm_status gm_pool_stats(gm_pool *pool, gm_stats *out) {
  if (!gm__pool_is(pool)) return GM_ERR_INVALID_ARGUMENT;
  const gm_status status = gm__sized_check(out, sizeof *out, "gm_pool_stats", "out", NULL);
  if (status) return status;
  const gm_stats stats = gm__pool_stats(pool);
  gm__sized_out(out, &stats, sizeof stats);
  return GM_OK;
}

gm_device *gm_pool_device(const gm_pool *pool) { return gm__pool_is(pool) ? pool->device : NULL; }

const char *gm_pool_name(const gm_pool *pool) { return gm__pool_is(pool) ? pool->name : ""; }

gm_strategy gm_pool_strategy(const gm_pool *pool) { return gm__pool_is(pool) ? pool->strategy : GM_STRATEGY_AUTO; }

gm_tracker *gm_pool_tracker(const gm_pool *pool) {
  return gm__pool_is(pool) && gm__pool_tracks(pool) ? atomic_load(&pool->tracker) : NULL;
}
