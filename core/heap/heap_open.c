#include "core/heap/heap_open.h"

#include "core/arena/arena.h"
#include "core/arena/free_chunks.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/context/config.h"
#include "core/heap/placement.h"
#include "core/heap/request_read.h"
#include "gm/config.h"

enum {
  HEAP_APART_SHARE = 16,   /* of a page: the largest block that has pages apart from those of larger ones */
  HEAP_SMALL_PAGES = 16,   /* blocks on quick lists hold on to addresses: the lists are emptied before a page is made */
  HEAP_SMALL_SEGMENTS = 64 /* without pages a kept block lies in the way of a larger free chunk */
};

/* ---- what the device's other pools ask for ---- */

static uint64_t heap_tell_held(void *user) {
  return atomic_load_explicit(&((gm__heap *)user)->provider.stats.reserved_bytes, memory_order_relaxed);
}

static uint64_t heap_tell_pooled(void *user) { return gm__heap_pooled(user); }

static uint64_t heap_tell_idle(void *user) { return gm__heap_collect(user); }

static uint64_t heap_give(void *user, uint64_t keep_bytes) { return gm__heap_trim(user, keep_bytes, UINT64_MAX); }

void gm__heap_open(gm__heap *heap) {
  if (!gm__provider_lends(&heap->provider)) return;
  heap->provider.lender = &heap->reclaimer;
  gm__device_add_reclaimer(heap->device, &heap->reclaimer);
}

bool gm__heap_close(gm__heap *heap) {
  return !gm__provider_lends(&heap->provider) || gm__device_remove_reclaimer(heap->device, &heap->reclaimer);
}

/* ---- begin and end ---- */

/* A page that is unmapped leaves its address, which recorded commands may name. Unmapping may submit, too, which a
 * free must not. */
static bool heap_may_map(const gm__heap_params *params, bool bounded) {
  const gm_pool_params *pool = params->pool;
  return params->strategy == GM_STRATEGY_BEST_FIT && !pool->no_vmm && !pool->upstream && !pool->share &&
         pool->priority == 0 && !(pool->flags & (GM_POOL_NO_TRIM | GM_POOL_CAPTURES)) && !bounded;
}

/* Finds the kind of memory that requests get which ask for bytes alone. Such requests take the fast path in every pool.
 * *plain: it is the kind of a pool that wishes nothing. REQUIRES: memory rules. */
static gm_status heap_read_wishes(gm__heap *heap, const gm_pool_params *params, gm__memory_kind *out, bool *plain,
                                  gm_error *err) {
  const gm__want none = {.usage = GM_USAGE_TRANSFER | GM_USAGE_STORAGE};
  const gm_request bytes = {.bytes = 1};
  gm__want want;
  heap->wishes = (gm_request){.must_be = params->must_be,
                              .usage = params->usage,
                              .memory_types = params->memory_types,
                              .require = params->require,
                              .prefer = params->prefer};
  *out = gm__kind_of(&heap->provider.rules, &none);
  *plain = true;
  const gm_status status = gm__want_read(heap, &bytes, false, &want, err);
  if (status) return gm__error_of("gm_pool_create", status, err);
  const gm__memory_kind usual = *out;
  *out = gm__kind_of(&heap->provider.rules, &want);
  *plain = gm__kind_serves(&usual, out) && gm__kind_serves(out, &usual);
  return GM_OK;
}

/* REQUIRES: gm__keep_init. */
static void heap_init_rules(gm__heap *heap, const gm__heap_params *params, bool plain) {
  gm_context *ctx = heap->device->ctx;
  gm__memory_rules *rules = &heap->provider.rules;
  rules->size = gm__config_u64(ctx, "segment_size");
  rules->zeroes = gm__config_bool(ctx, "zero_segments");
  gm__pages_init(&heap->provider, plain && rules->size == UINT64_MAX && heap_may_map(params, heap->keep.strict));
  if (heap->keep.strict) rules->ahead = heap->keep.max_bytes;
  const uint64_t small = gm__config_u64(ctx, "small_block_threshold");
  if (heap->provider.pages.usable) rules->apart = heap->provider.pages.page_bytes / HEAP_APART_SHARE;
  rules->small = heap->provider.pages.usable ? gm__mul_sat(small, HEAP_SMALL_PAGES) : small / HEAP_SMALL_SEGMENTS;
}

gm_status gm__heap_init(gm__heap *heap, gm_device *device, const gm__heap_params *params, gm_error *err) {
  gm_context *ctx = device->ctx;
  gm__memory_kind kind;
  bool plain;
  const uint64_t most = gm__config_u64(ctx, "max_pooled_per_bucket");
  heap->device = device;
  gm__room_renew(&device->room);
  heap->id = gm__context_next_id(ctx);
  heap->strategy = params->strategy;
  heap->checked = params->checked;
  heap->guarded = params->guarded;
  heap->reap = params->reap;
  heap->guard = params->guard;
  heap->placement = params->strategy == GM_STRATEGY_BUCKET ? &gm__bucket_placement
                    : params->fixed.count                  ? &gm__fixed_placement
                                                           : &gm__best_fit_placement;
  gm__provider_init(&heap->provider, device, params->pool, heap->id);
  heap->provider.claim.max_bytes = params->max_bytes;
  gm__keep_init(heap, params->pool->keep_bytes);
  gm__memory_rules_init(&heap->provider.rules, device);
  gm_status status = heap_read_wishes(heap, params->pool, &kind, &plain, err);
  heap_init_rules(heap, params, plain);
  gm__arena_set_init(&heap->arenas, &heap->provider, &heap->observers, &kind, params->owner);
  heap->arenas.guarded = params->guarded;
  heap->arenas.whole = params->fixed.count || params->strategy == GM_STRATEGY_BUCKET;
  heap->arenas.closed =
      params->guarded || heap->keep.strict || heap->provider.captures || params->strategy == GM_STRATEGY_BUCKET;
  gm__fixed_sizes *fixed = &heap->dedicated.buckets.fixed;
  *fixed = params->fixed;
  for (uint32_t i = 0; i < fixed->count; i++)
    fixed->bytes[i] = gm__round_up(fixed->bytes[i], heap->provider.rules.granule);
  const bool done = gm__dedicated_init(&heap->dedicated, &heap->provider, &heap->observers, params->class_bits,
                                       (uint32_t)gm__min(most, UINT32_MAX));
  heap->dedicated.checked = params->checked;
  heap->dedicated.guarded = params->guarded;
  heap->dedicated.bounded = params->strategy == GM_STRATEGY_BUCKET && !heap->provider.no_trim;
  gm__keep_start(heap);
  heap->reclaimer = (gm__reclaimer){
      .user = heap, .held = heap_tell_held, .pooled = heap_tell_pooled, .idle = heap_tell_idle, .give = heap_give};
  if (done || status) return status;
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_pool_create", "no host memory for a pool");
}

/* Takes what the arenas could have given back off the device's figures. */
static void heap_unpublish(gm__heap *heap) {
  gm__arena *arena;
  for (uint32_t i = 0; (arena = gm__arena_at(&heap->arenas, i)); i++) {
    if (arena->noted) gm__device_note_pooled(heap->device, -(int64_t)arena->noted);
  }
}

void gm__heap_clear(gm__heap *heap, bool forked) {
  const gm_close_mode mode = forked ? GM_CLOSE_ABANDON : GM_CLOSE_NORMAL;
  if (!forked) heap_unpublish(heap);
  gm__dedicated_clear(&heap->dedicated, mode);
  gm__provider_end(&heap->provider);
  gm__arenas_clear(&heap->arenas, mode);
  gm__pages_clear(&heap->provider, mode);
  gm__quotas_release(gm__observers_quotas(&heap->observers), forked);
  gm_tracker_destroy(heap->observers.tracker);
  gm__recorder_close(heap->observers.recorder, forked);
  gm__buckets_clear(&heap->dedicated.buckets);
  gm__provider_clear(&heap->provider, forked);
  if (!forked) gm__keep_end(&heap->keep);
}

void gm__heap_settle_given(gm__heap *heap) {
  gm__mutex_lock(&heap->provider.lock);
  gm__dedicated_settle_given(&heap->dedicated);
  gm__mutex_unlock(&heap->provider.lock);
  for (gm__arena *arena = NULL; (arena = gm__arena_next(&heap->arenas, arena));) gm__free_chunks_settle_given(arena);
}

gm_status gm__heap_drain(gm__heap *heap, const char *op, gm_error *err) {
  gm__heap_settle_given(heap);
  gm__mutex_lock(&heap->provider.lock);
  gm_status status = gm__order_drain_all(&heap->dedicated.order, op, err);
  gm__mutex_unlock(&heap->provider.lock);
  for (gm__arena *arena = NULL; (arena = gm__arena_next(&heap->arenas, arena));) {
    if (!status) status = gm__order_drain_all(&arena->order, op, err);
  }
  return status;
}
