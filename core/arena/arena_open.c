#include "core/arena/observe.h"
#include "core/base/alloc.h"
#include "core/base/saturate.h"

static void arena_take_lock(void *arena) { gm__arena_lock(arena); }

static void arena_leave_lock(void *arena) { gm__arena_unlock(arena); }

void gm__arena_release(gm__arena *arena, gm_close_mode mode) {
  const gm_services *services = arena->chunks.services;
  size_t cursor = 0;
  uint64_t number, cold;
  while (gm__map_next(&arena->cold, &cursor, &number, &cold)) {
    gm__order_clear_use(&arena->order, &((gm__cold *)(uintptr_t)cold)->use, mode);
    gm__cold_clear(services, (gm__cold *)(uintptr_t)cold);
    gm__release(services, (gm__cold *)(uintptr_t)cold, sizeof(gm__cold));
  }
  gm__map_clear(&arena->cold);
  gm__order_clear(&arena->order, mode);
  for (gm__segment *segment = arena->segments, *next; segment; segment = next) {
    next = segment->next;
    if (segment->range) gm__va_range_close(arena->set->provider, segment->range, &segment->allocation->memory, mode);
    gm__release(services, segment, sizeof *segment);
  }
  gm__release(services, arena->segment_table, arena->segment_capacity * sizeof *arena->segment_table);
  for (int i = 0; i < GM__STREAM_CACHES; i++) gm__release(services, arena->caches[i], sizeof(gm__stream_cache));
  gm__lookup_clear(&arena->lookup, services);
  gm__chunks_clear(&arena->chunks);
  gm__ledger_close(&arena->ledger);
  gm__thread_life_give(arena->life);
  if (mode == GM_CLOSE_NORMAL) gm__bias_destroy(&arena->lock);
  gm__release(services, arena, sizeof *arena);
}

gm__arena *gm__arena_new(gm__arena_set *set, const gm__memory_kind *kind, uint32_t number) {
  const gm_services *services = gm__provider_services(set->provider);
  gm__arena *arena = gm__alloc(services, sizeof *arena);
  if (!arena) return NULL;
  gm__bias_init(&arena->lock, GM__RANK_ARENA);
  arena->chunks.services = services;
  arena->set = set;
  arena->number = number;
  arena->tag_of_blocks = (GM__ARENA_BLOCK >> GM__ARENA_SHIFT) + number;
  arena->kind = *kind;
  arena->shift = (uint32_t)__builtin_ctzll(set->provider->rules.granule);
  const uint64_t quick = set->whole ? UINT32_MAX : set->provider->rules.small >> arena->shift;
  arena->quick_most = (uint32_t)gm__min(quick, UINT32_MAX);
  gm__lookup_init(&arena->lookup);
  gm__map_init(&arena->cold, services);
  gm__order_init(&arena->order, set->provider->device, &(gm__order_lock){arena_take_lock, arena_leave_lock, arena});
  gm__arena_count_streams(arena);
  const uint32_t check = (uint32_t)(set->serial * 128 + number) * UINT32_C(0x9e3779b1);
  gm__observe_new(arena);
  if (gm__chunks_init(&arena->chunks, services, check) && gm__arena_make_cache(arena, GM__STREAM_CACHE_IDLE) &&
      gm__arena_make_cache(arena, GM__STREAM_CACHE_MIXED)) {
    arena->caches[GM__STREAM_CACHE_IDLE]->ordered = true;
    gm__arena_open_fast(arena);
    return arena;
  }
  gm__arena_release(arena, GM_CLOSE_NORMAL);
  return NULL;
}
