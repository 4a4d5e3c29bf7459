#include "core/pool/cache.h"

#include "core/base/clock.h"
#include "core/base/saturate.h"
#include "core/pool/growth.h"
#include "core/pool/hole.h"
#include "core/pool/supply.h"

/* Invariants. What an allocation or a free reads of this is one number, `pool->quick_blocks`, which only those write
 * who are slow anyway: who grows, trims, or sees a stream for the first time. Quick lists of a pool never keep more
 * than `all` blocks together: each lane has its share. Age is told by the device's clock of frees: it moves on at a
 * mark, so a hole whose last free is not after the mark has not been touched since. */

enum { CACHE_SCALE_MOST = 16 };
static const uint64_t cache_ns_per_ms = UINT64_C(1000000);
static const uint64_t cache_auto_age_ns = UINT64_C(60000000000);

static uint64_t cache_read(const _Atomic uint64_t *bound) { return atomic_load_explicit(bound, memory_order_relaxed); }

/* ---- bounds in number ---- */

static uint64_t cache_lane_bound(const gm__cache *cache) {
  const uint32_t lanes = atomic_load(&cache->lanes);
  const uint64_t all = atomic_load(&cache->all), share = lanes ? all / lanes : all;
  return gm__min(gm__min(atomic_load(&cache->local_now), share), UINT32_MAX);
}

/* Whoever changes what it is made of does this afterwards; the last of several has seen all changes. */
static void cache_publish(gm_pool *pool) {
  gm__cache *cache = &pool->cache;
  uint64_t least;
  do {
    least = cache_lane_bound(cache);
    atomic_store(&pool->quick_blocks, (uint32_t)least);
  } while (least != cache_lane_bound(cache));
}

void gm__cache_add_lane(gm_pool *pool) {
  atomic_fetch_add(&pool->cache.lanes, 1);
  cache_publish(pool);
}

static uint64_t cache_scaled(const gm__cache *cache, uint64_t bound) {
  return gm__max(gm__min(gm__scale_sat(bound, cache->scale), atomic_load(&cache->all)), cache->kept);
}

static void cache_rescale(gm_pool *pool, double scale) {
  gm__cache *cache = &pool->cache;
  cache->scale = scale;
  atomic_store(&cache->local_now, cache_scaled(cache, cache->local));
  atomic_store(&cache->global_now, cache_scaled(cache, cache->global));
  cache_publish(pool);
}

void gm__cache_widen(gm_pool *pool, uint64_t blocks) {
  gm__cache *cache = &pool->cache;
  gm__mutex_lock(&cache->lock);
  cache->kept = gm__max(cache->kept, blocks);
  atomic_store(&cache->all, gm__max(atomic_load(&cache->all), blocks));
  cache_rescale(pool, cache->scale);
  gm__mutex_unlock(&cache->lock);
}

/* ---- following the pressure ---- */

/* Of what the pool may have, the share that is handed out; negative: not known. */
static double cache_pressure(gm_pool *pool) {
  gm_stats arenas = {.struct_size = sizeof arenas};
  const uint64_t claimed = atomic_load_explicit(&pool->claimed, memory_order_relaxed);
  const uint64_t cap = atomic_load_explicit(&pool->max_bytes, memory_order_relaxed);
  const uint64_t room = pool->has_upstream ? UINT64_MAX : gm__device_room(pool->device, false);
  const uint64_t limit = gm__min(cap, gm__add_sat(claimed, room));
  gm__arenas_add(pool, &arenas);
  const uint64_t in_use = arenas.in_use_bytes + cache_read(&pool->stats.in_use_bytes);
  if (limit == UINT64_MAX) return -1;
  return limit ? (double)in_use / (double)limit : 1;
}

static void cache_flush(gm_pool *pool) {
  gm__arena *arena;
  for (uint32_t i = 0; (arena = gm__arena_at(pool, i)); i++) {
    gm__arena_lock(arena);
    gm__holes_flush(arena);
    gm__growth_publish(arena);
    gm__arena_unlock(arena);
  }
}

/* One step. True: the pressure is high. */
static bool cache_scale(gm_pool *pool) {
  gm__cache *cache = &pool->cache;
  const double pressure = cache_pressure(pool);
  const bool high = pressure > cache->high;
  if (high && cache->scale > 1.0 / CACHE_SCALE_MOST && cache->factor > 1) {
    cache_rescale(pool, cache->scale / cache->factor);
    gm__stats_count(&pool->stats.cache_shrinks, 1);
  } else if (pressure >= 0 && pressure < cache->low && cache->scale < CACHE_SCALE_MOST && cache->factor > 1) {
    cache_rescale(pool, cache->scale * cache->factor);
    gm__stats_count(&pool->stats.cache_grows, 1);
  }
  if (high) cache_flush(pool);
  return high;
}

/* ---- bounds in age and bytes ---- */

static void cache_set_mark(gm_pool *pool, uint64_t now) {
  pool->cache.marked_ns = now;
  pool->cache.mark = atomic_fetch_add(&pool->device->order_clock, 1);
}

static uint64_t cache_max_age(const gm__cache *cache) {
  return cache->max_age_ns == UINT64_MAX ? cache_auto_age_ns : cache->max_age_ns;
}

/* The time by which a trim is to look for what nobody has used since, once the mark is old enough; then there is a new
 * one. 0: not yet. */
static uint64_t cache_turn(gm_pool *pool, uint64_t age_ns) {
  const uint64_t now = gm__now_ns(), mark = pool->cache.mark;
  if (now - pool->cache.marked_ns < age_ns) return 0;
  cache_set_mark(pool, now);
  return mark;
}

/* Outside the lock: an upstream may call anything. */
static uint64_t cache_trim(gm_pool *pool, uint64_t freed_by) {
  const uint64_t most = pool->cache.max_bytes;
  uint64_t bytes = freed_by ? gm__supply_trim(pool, 0, freed_by) : 0;
  gm__stats_count(&pool->stats.aged_bytes, bytes);
  if (most != UINT64_MAX && gm__pool_pooled(pool) > most) bytes += gm__supply_trim(pool, most, UINT64_MAX);
  return bytes;
}

void gm__cache_tend(gm_pool *pool) {
  gm__cache *cache = &pool->cache;
  uint64_t freed_by = 0;
  if (!gm__mutex_try_lock(&cache->lock)) return;
  const bool high = cache_scale(pool);
  if (high || cache->max_age_ns != UINT64_MAX) freed_by = cache_turn(pool, cache_max_age(cache));
  gm__mutex_unlock(&cache->lock);
  cache_trim(pool, freed_by);
}

uint64_t gm__cache_clean(gm_pool *pool) {
  gm__cache *cache = &pool->cache;
  gm__mutex_lock(&cache->lock);
  cache_scale(pool);
  const uint64_t freed_by = cache_turn(pool, cache_max_age(cache));
  gm__mutex_unlock(&cache->lock);
  return cache_trim(pool, freed_by);
}

/* ---- begin and end ---- */

void gm__cache_init(gm_pool *pool) {
  gm_context *ctx = pool->device->ctx;
  gm__cache *cache = &pool->cache;
  const uint64_t age_ms = gm__config_u64(ctx, "cache.max_age");
  gm__mutex_init(&cache->lock, GM__RANK_CACHE);
  cache->local = gm__config_u64(ctx, "cache.stream_local");
  cache->global = gm__config_u64(ctx, "cache.global");
  atomic_store(&cache->all, gm__config_u64(ctx, "cache_size"));
  cache->max_bytes = gm__config_u64(ctx, "cache.max_bytes");
  const uint64_t age_ns = gm__mul_sat(age_ms, cache_ns_per_ms);
  cache->max_age_ns = age_ms == UINT64_MAX ? UINT64_MAX : gm__min(age_ns, UINT64_MAX - 1); /* more than auto is never */
  cache->low = gm__config_fraction(ctx, "scaling.low");
  cache->high = gm__config_fraction(ctx, "scaling.high");
  cache->factor = gm__config_fraction(ctx, "scaling.factor");
  cache_rescale(pool, 1);
  cache_set_mark(pool, gm__now_ns());
}

void gm__cache_end(gm_pool *pool) { gm__mutex_destroy(&pool->cache.lock); }
