#include "core/manage/tracked.h"

#include "core/arena/observe.h"
#include "core/arena/walk.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/heap/heap_track.h"
#include "core/manage/lifecycle.h"
#include "core/pool/spans.h"
#include "core/provider/walk.h"

/* Invariants. A live chunk is tracked when its ledger record has an id; then the ledger's totals include it. Dedicated
 * blocks are in the tracker itself (core/heap/heap_track.c). `track_turns` changes under the provider lock: an arena or
 * block that comes later sees it. The thread that changed it finds those that were there before. */

/* ---- what the tracker asks ---- */

static void tracked_figures(void *user, gm__track_figures *sum) {
  const gm_pool *pool = user;
  const gm__arena *arena;
  for (uint32_t i = 0; (arena = gm__arena_at(&pool->heap.arenas, i)); i++) {
    sum->count += gm__ledger_get(&arena->ledger.count);
    sum->bytes += gm__ledger_get(&arena->ledger.bytes);
    sum->peak_bytes += gm__ledger_get(&arena->ledger.peak_bytes);
  }
  if (sum->peak_bytes < sum->bytes) sum->peak_bytes = sum->bytes; /* other threads write while this one reads */
}

static gm_track_entry tracked_entry(const gm__arena *arena, uint32_t number, const gm__ledger_record *record) {
  gm__chunk *chunk = gm__arena_chunk(arena, number);
  const gm_memory *memory = &arena->segment_table[chunk->segment_index]->allocation->memory;
  return (gm_track_entry){
      .id = record->id,
      .address = chunk->address,
      .bytes = gm__arena_requested(arena, chunk),
      .elements = record->elements,
      .born_ns = record->born_ns,
      .mark = record->mark,
      .pool = gm__pool_of(arena->set)->heap.id,
      .stream = record->stream,
      .tag = chunk->tag,
      .location = record->moved ? record->location : gm__heap_location(&gm__pool_of(arena->set)->heap, memory)};
}

static void tracked_entries(void *user, void (*look)(void *looker, const gm_track_entry *entry), void *looker) {
  const gm_pool *pool = user;
  for (gm__arena *arena = NULL; (arena = gm__arena_next(&pool->heap.arenas, arena));) {
    for (uint32_t number = 0; (number = gm__arena_walk(arena, number));) {
      const gm__ledger_record *record = gm__ledger_at(&arena->ledger, number);
      if (!record || !record->id) continue;
      const gm_track_entry entry = tracked_entry(arena, number, record);
      look(looker, &entry);
    }
  }
}

static void tracked_totals(void *user, void (*look)(void *looker, const gm_tag_total *total), void *looker) {
  const gm_pool *pool = user;
  for (gm__arena *arena = NULL; (arena = gm__arena_next(&pool->heap.arenas, arena));)
    gm__ledger_each_total(&arena->ledger, look, looker);
}

static void tracked_marked(void *user, uint64_t mark) { gm__record_tracker_mark(user, mark); }

static bool tracked_untrack_in(gm__arena *arena, uint64_t id) {
  for (uint32_t number = 0; (number = gm__arena_walk(arena, number));) {
    const gm__ledger_record *record = gm__ledger_at(&arena->ledger, number);
    if (!record || record->id != id) continue;
    gm__chunk *chunk = gm__arena_chunk(arena, number);
    gm__ledger_leave(&arena->ledger, number, gm__arena_requested(arena, chunk), chunk->tag);
    return true;
  }
  return false;
}

static bool tracked_untrack(void *user, uint64_t id) {
  const gm_pool *pool = user;
  bool found = false;
  for (gm__arena *arena = NULL; (arena = gm__arena_next(&pool->heap.arenas, arena));)
    found = found || (id && tracked_untrack_in(arena, id));
  return found;
}

gm_status gm__tracked_begin(gm_pool *pool, gm_context *ctx, gm_error *err) {
  gm_tracker *tracker = NULL;
  gm_status status = gm_tracker_create(ctx, &tracker, err);
  if (status) return status;
  pool->track_source = (gm__track_source){.user = pool,
                                          .figures = tracked_figures,
                                          .entries = tracked_entries,
                                          .totals = tracked_totals,
                                          .untrack = tracked_untrack,
                                          .marked = tracked_marked};
  gm__tracker_set_source(tracker, &pool->track_source);
  atomic_store(&pool->heap.observers.tracker, tracker);
  return GM_OK;
}

/* ---- blocks ---- */

uint64_t gm__tracked_beside(gm_pool *pool, const gm_track_entry *entry) {
  if (!gm__observers_track(&pool->heap.observers)) return 0;
  const uint64_t id = gm_tracker_track(pool->heap.observers.tracker, entry);
  if (gm__observers_track(&pool->heap.observers)) return id;
  gm_tracker_untrack(pool->heap.observers.tracker, id);
  return 0;
}

void gm__tracked_annotate(gm_pool *pool, const gm_block *block, uint64_t elements, gm_location location) {
  gm__live live;
  gm_block_span span;
  for (uint32_t i = 0; gm__spans_is(block) && gm__spans_part(pool, block, i, &span); i++) {
    gm__tracked_annotate(pool, &span.block, i ? 0 : elements, location); /* the first has all: the sum is right */
  }
  if (!gm__observers_track(&pool->heap.observers) || !gm__live_open(&pool->heap, block, &live)) return;
  const uint64_t id = gm__tracked_id(&live);
  const bool here = id && live.arena;
  if (here) {
    gm__ledger_record *record = gm__ledger_at(&live.arena->ledger, live.chunk);
    record->elements = elements;
    record->location = location;
    record->moved = true;
  }
  gm__live_close(&live);
  if (!here) gm__tracker_annotate(pool->heap.observers.tracker, id, elements, location);
}

/* ---- on and off while the pool lives ---- */

static void tracked_forget_dedicated(gm_pool *pool) {
  uint32_t cursor = 0;
  gm__mutex_lock(&pool->heap.provider.lock);
  for (gm__allocation *allocation; (allocation = gm__provider_walk(&pool->heap.provider, &cursor));)
    allocation->cold.track_id = 0;
  gm__mutex_unlock(&pool->heap.provider.lock);
}

static void tracked_turn(gm_pool *pool) {
  gm__mutex_lock(&pool->heap.provider.lock);
  atomic_fetch_add(&pool->heap.observers.track_turns, 1);
  gm__mutex_unlock(&pool->heap.provider.lock);
}

static void tracked_stop(gm_pool *pool) {
  gm__arena *arena;
  tracked_turn(pool);
  for (uint32_t i = 0; (arena = gm__arena_at(&pool->heap.arenas, i)); i++) gm__observe_untrack(arena);
  tracked_forget_dedicated(pool);
  gm__tracker_forget(pool->heap.observers.tracker, pool->heap.id);
}

static bool tracked_start_arenas(gm_pool *pool) {
  bool done = true;
  for (gm__arena *arena = NULL; (arena = gm__arena_next(&pool->heap.arenas, arena));)
    done = done && gm__observe_track(arena);
  return done;
}

/* Finds the next live dedicated block, by value; false at the end. */
static bool tracked_next(gm_pool *pool, uint32_t *cursor, gm_block *out) {
  gm__allocation *allocation;
  gm__mutex_lock(&pool->heap.provider.lock);
  do {
    allocation = gm__provider_walk(&pool->heap.provider, cursor);
  } while (allocation && allocation->state != GM__ALLOCATION_LIVE);
  if (allocation) *out = gm__allocation_block(allocation);
  gm__mutex_unlock(&pool->heap.provider.lock);
  return allocation != NULL;
}

static gm_status tracked_start(gm_pool *pool, gm_error *err) {
  uint32_t cursor = 0;
  gm_block block;
  gm_status status =
      atomic_load(&pool->heap.observers.tracker) ? GM_OK : gm__tracked_begin(pool, pool->device->ctx, err);
  if (status) return status;
  tracked_turn(pool);
  bool done = tracked_start_arenas(pool);
  while (done && tracked_next(pool, &cursor, &block)) done = gm__track_enter(&pool->heap, &block);
  if (done) return GM_OK;
  tracked_stop(pool);
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_pool_set_tracking",
                  "no host memory to enter the blocks of pool \"%s\" that are alive: it is not tracked",
                  pool->heap.provider.name);
}

gm_status gm_pool_set_tracking(gm_pool *pool, bool on, gm_error *err) {
  GM__UNCANCELLED();
  gm_status status = gm__pool_alive(pool, "gm_pool_set_tracking", err);
  if (status) return status;
  gm__mutex_lock(&pool->gate);
  const bool was = gm__observers_track(&pool->heap.observers);
  if (on && !was) status = tracked_start(pool, err);
  if (!on && was) tracked_stop(pool);
  gm__mutex_unlock(&pool->gate);
  return status;
}
