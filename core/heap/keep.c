#include "core/heap/keep.h"

#include "core/heap/heap.h"

#include "core/algo/classifier.h"
#include "core/arena/free_chunks.h"
#include "core/arena/quick_flush.h"
#include "core/arena/reclaim.h"
#include "core/base/clock.h"
#include "core/base/saturate.h"
#include "core/context/config.h"
#include "gm/config.h"

/* Invariants. An allocation or a free reads one number of all this, gm__quick_bound.blocks. Only slow paths write it:
 * growing, trimming, the first sight of a stream. Age is told by the device's clock of frees, which moves on at an
 * inspection. A free chunk whose last free is not after the inspection was not touched since. */

static const double keep_scale_most = 16; /* bounds grow until they are so many times as large as set, or as small */
static const uint64_t keep_ns_per_ms = UINT64_C(1000000);
static const uint64_t keep_auto_age_ns = UINT64_C(60000000000);

static uint64_t keep_read(const _Atomic uint64_t *bound) { return atomic_load_explicit(bound, memory_order_relaxed); }

/* ---- bounds in number ---- */

/* A bound in number as the pressure has it. Memory that was put there on purpose widens it. */
static uint64_t keep_bound(const gm__keep *keep, uint64_t bound) {
  return gm__max(gm__min(gm__scale_sat(bound, keep->scale), keep->all), keep->kept);
}

/* Writes the bounds where the streams and the pool read them. REQUIRES: keep lock. */
void gm__keep_publish(gm__heap *heap) {
  gm__keep *keep = &heap->keep;
  gm__dedicated *dedicated = &heap->dedicated;
  const uint64_t of_stream = keep_bound(keep, keep->local);
  const uint64_t quick = atomic_load(&keep->aggressive) ? 0 : of_stream;
  atomic_store(&dedicated->most_of_stream, of_stream);
  atomic_store(&dedicated->most_idle, keep_bound(keep, keep->global));
  atomic_store(&dedicated->most_of_pool, keep->all);
  const bool whole = heap->arenas.whole; /* their number is that of the pool's blocks */
  gm__quick_bound_set(&heap->arenas.quick, quick && whole ? UINT64_MAX : quick, whole ? UINT64_MAX : keep->all);
}

void gm__keep_widen(gm__heap *heap, uint64_t blocks) {
  gm__keep *keep = &heap->keep;
  gm__mutex_lock(&keep->lock);
  keep->kept = gm__max(keep->kept, blocks);
  keep->all = gm__max(keep->all, blocks);
  gm__keep_publish(heap);
  gm__mutex_unlock(&keep->lock);
}

/* ---- pressure ---- */

/* The share of the pool's limit that is handed out; negative: no limit is known. */
static double keep_pressure(gm__heap *heap) {
  gm_stats arenas = {.struct_size = sizeof arenas};
  const uint64_t used = gm__claim_used(&heap->provider.claim);
  const uint64_t cap = gm__claim_cap(&heap->provider.claim);
  const uint64_t room = gm__room_left(&heap->provider.claim, false);
  const uint64_t limit = gm__min(cap, gm__add_sat(used, room));
  gm__arenas_add(&heap->arenas, &arenas);
  const uint64_t in_use = arenas.in_use_bytes + keep_read(&heap->provider.stats.in_use_bytes);
  if (limit == UINT64_MAX) return -1;
  return limit ? (double)in_use / (double)limit : 1;
}

static void keep_flush(gm__heap *heap) {
  for (gm__arena *arena = NULL; (arena = gm__arena_next(&heap->arenas, arena));) {
    gm__free_chunks_flush(arena);
    gm__arena_publish(arena);
  }
}

/* The bounds in number follow the pressure by one step. Where no limit is known, there is room. Returns true if the
 * pressure is high. Then the quick lists are empty. REQUIRES: keep lock. */
static bool keep_follow(gm__heap *heap) {
  gm__keep *keep = &heap->keep;
  const double pressure = keep_pressure(heap);
  const bool high = pressure > keep->high;
  if (high && keep->scale > 1 / keep_scale_most) {
    keep->scale /= keep->factor;
    gm__keep_publish(heap);
  } else if (pressure < keep->low && keep->scale < keep_scale_most) {
    keep->scale *= keep->factor;
    gm__keep_publish(heap);
  }
  if (high) keep_flush(heap);
  return high;
}

/* ---- bounds in age and bytes ---- */

static void keep_set_epoch(gm__heap *heap, uint64_t now) {
  heap->keep.epoch_ns = now;
  heap->keep.epoch = atomic_fetch_add(&heap->device->order_clock, 1);
}

static uint64_t keep_max_age(const gm__keep *keep) {
  return keep->max_age_ns == UINT64_MAX ? keep_auto_age_ns : keep->max_age_ns;
}

/* The clock by which unused memory is old, once the last inspection is `age_ns` ago; then a new inspection begins. 0:
 * not yet. REQUIRES: keep lock. */
static uint64_t keep_turn(gm__heap *heap, uint64_t age_ns) {
  const uint64_t now = gm__now_ns(), epoch = heap->keep.epoch;
  if (now - heap->keep.epoch_ns < age_ns) return 0;
  keep_set_epoch(heap, now);
  return epoch;
}

/* Gives back what the bounds do not allow. REQUIRES: no lock, because an upstream may call anything. */
static uint64_t keep_trim(gm__heap *heap, uint64_t freed_by) {
  const uint64_t most = atomic_load(&heap->keep.aggressive) ? 0 : keep_read(&heap->keep.max_bytes);
  uint64_t bytes = freed_by ? gm__heap_trim(heap, 0, freed_by) : 0;
  gm__stats_count(&heap->provider.stats.aged_bytes, bytes);
  if (!heap->keep.strict && gm__heap_pooled(heap) > most) bytes += gm__heap_trim(heap, most, UINT64_MAX);
  return bytes;
}

void gm__keep_tend(gm__heap *heap) {
  gm__keep *keep = &heap->keep;
  uint64_t freed_by = 0;
  if (!gm__mutex_try_lock(&keep->lock)) return;
  const bool high = keep_follow(heap), trims = !heap->provider.no_trim;
  if (trims && (high || keep->max_age_ns != UINT64_MAX)) freed_by = keep_turn(heap, keep_max_age(keep));
  gm__mutex_unlock(&keep->lock);
  if (trims) keep_trim(heap, freed_by);
}

void gm__keep_hold_bytes(gm__heap *heap) {
  if (!heap->provider.no_trim) keep_trim(heap, 0);
}

void gm__keep_hold(gm__heap *heap, const gm_stream *stream, bool after_free) {
  const gm__keep *keep = &heap->keep;
  if (!keep->strict) return;
  const uint64_t most = keep_read(&keep->max_bytes);
  if (gm__heap_pooled(heap) > most && !gm__stream_captured(stream)) gm__heap_give_done(heap, most, !after_free);
}

uint64_t gm__keep_clean(gm__heap *heap) {
  gm__keep *keep = &heap->keep;
  gm__mutex_lock(&keep->lock);
  keep_follow(heap);
  const uint64_t freed_by = keep_turn(heap, keep_max_age(keep));
  gm__mutex_unlock(&keep->lock);
  return keep_trim(heap, freed_by);
}

/* ---- shares that the pool may have of its own ---- */

static double keep_share(gm__heap *heap, double own, const char *key) {
  return own < 0 ? gm__config_fraction(heap->device->ctx, key) : own;
}

static double keep_share_now(gm__heap *heap, const double *own, const char *key) {
  gm__mutex_lock(&heap->keep.lock);
  const double share = *own;
  gm__mutex_unlock(&heap->keep.lock);
  return keep_share(heap, share, key);
}

double gm__keep_coalesce(gm__heap *heap) { return keep_share_now(heap, &heap->keep.coalesce, "coalescing_threshold"); }

double gm__keep_cleanup(gm__heap *heap) { return keep_share_now(heap, &heap->keep.cleanup, "cleanup.threshold"); }

static gm_pressure_thresholds keep_thresholds(gm__heap *heap, const gm_pressure_thresholds *own) {
  return (gm_pressure_thresholds){.medium = keep_share(heap, own->medium, "pressure.medium"),
                                  .high = keep_share(heap, own->high, "pressure.high"),
                                  .critical = keep_share(heap, own->critical, "pressure.critical"),
                                  .hysteresis = keep_share(heap, own->hysteresis, "pressure.hysteresis")};
}

gm_pressure_thresholds gm__keep_pressure(gm__heap *heap) {
  gm__mutex_lock(&heap->keep.lock);
  const gm_pressure_thresholds own = heap->keep.pressure;
  gm__mutex_unlock(&heap->keep.lock);
  return keep_thresholds(heap, &own);
}

gm_status gm__keep_check_pressure(gm__heap *heap, gm_error *err) {
  const gm_pressure_thresholds now = keep_thresholds(heap, &heap->keep.pressure);
  return gm__classifier_check(&now, err);
}

/* ---- begin and end ---- */

uint64_t gm__keep_age_ns(uint64_t age_ms) {
  const uint64_t most = UINT64_MAX - 1; /* UINT64_MAX would mean auto */
  return age_ms == UINT64_MAX ? UINT64_MAX : gm__min(gm__mul_sat(age_ms, keep_ns_per_ms), most);
}

void gm__keep_init(gm__heap *heap, uint64_t keep_bytes) {
  gm_context *ctx = heap->device->ctx;
  gm__keep *keep = &heap->keep;
  gm__mutex_init(&keep->lock, GM__RANK_KEEP);
  keep->local = gm__config_u64(ctx, "cache.stream_local");
  keep->global = gm__config_u64(ctx, "cache.global");
  keep->all = gm__config_u64(ctx, "cache_size");
  keep->strict = keep_bytes && keep_bytes != GM_NO_LIMIT;
  keep->max_bytes = keep_bytes ? keep_bytes : gm__config_u64(ctx, "cache.max_bytes");
  if (keep_bytes == GM_NO_BYTES) keep->max_bytes = 0;
  keep->max_age_ns = gm__keep_age_ns(gm__config_u64(ctx, "cache.max_age"));
  keep->low = gm__config_fraction(ctx, "scaling.low");
  keep->high = gm__config_fraction(ctx, "scaling.high");
  keep->factor = gm__config_fraction(ctx, "scaling.factor");
  keep->aggressive = heap->strategy != GM_STRATEGY_BUCKET && gm__config_bool(ctx, "aggressive_coalescing");
  keep->coalesce = keep->cleanup = -1;
  keep->pressure = (gm_pressure_thresholds){-1, -1, -1, -1};
  keep->scale = 1;
}

void gm__keep_start(gm__heap *heap) {
  gm__keep_publish(heap);
  keep_set_epoch(heap, gm__now_ns());
}

void gm__keep_end(gm__keep *keep) { gm__mutex_destroy(&keep->lock); }
