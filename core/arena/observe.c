#include "core/arena/observe.h"

#include "core/arena/walk.h"

/* Invariants: `observed` says whether the ledger is open, there is an event buffer, or there are quotas.
 *
 * An observer that comes while blocks are out is told of them by a walk, in pieces. Events and quotas hear of a chunk
 * only once the walk has passed its number. The ledger hears of each, and the walk leaves out those that it has. */

static bool observe_ledger_enter(gm__arena *arena, uint32_t number, uint64_t stream) {
  gm__ledger *ledger = &arena->ledger;
  gm__chunk *chunk = gm__arena_chunk(arena, number);
  const uint32_t tag = chunk->tag;
  gm__ledger_total *total = gm__ledger_ready(ledger, number, tag);
  if (__builtin_expect(!total, 0)) total = gm__ledger_reserve(ledger, number, tag);
  if (total) gm__ledger_enter(ledger, total, number, gm__arena_requested(arena, chunk), stream);
  return total != NULL;
}

static bool observe_write_enter(gm__arena *arena, uint32_t number, uint64_t stream) {
  gm__event_buffer_add(arena->events, number, gm__arena_requested(arena, gm__arena_chunk(arena, number)), stream);
  return true;
}

static bool observe_quota_enter(gm__arena *arena, uint32_t number, uint64_t stream) {
  gm__chunk *chunk = gm__arena_chunk(arena, number);
  (void)stream;
  gm__quota_enter(arena->quotas, chunk->tag, gm__arena_requested(arena, chunk));
  return true;
}

void gm__observe_enter(gm__arena *arena, uint32_t number, const gm_stream *stream, bool counted) {
  const uint64_t id = stream ? stream->id : 0;
  if (arena->events && number < arena->events_below) observe_write_enter(arena, number, id);
  if (arena->ledger.tracker) observe_ledger_enter(arena, number, id);
  if (arena->quotas && !counted && number < arena->quotas_below) observe_quota_enter(arena, number, id);
}

/* The chunk leaves the ledger, and the count of its tag. */
static void observe_count_leave(gm__arena *arena, uint32_t number) {
  gm__chunk *chunk = gm__arena_chunk(arena, number);
  const uint64_t requested = gm__arena_requested(arena, chunk);
  const bool counted = arena->quotas && number < arena->quotas_below;
  if (counted && gm__arena_is_out(arena, number)) gm__quota_leave(arena->quotas, chunk->tag, requested);
  if (arena->ledger.tracker) gm__ledger_leave(&arena->ledger, number, requested, chunk->tag);
}

void gm__observe_leave(gm__arena *arena, uint32_t number, const gm_stream *stream) {
  const bool told = arena->events && number < arena->events_below;
  if (told) gm__event_buffer_add(arena->events, number, 0, stream ? stream->id : 0);
  if (arena->ledger.tracker || arena->quotas) observe_count_leave(arena, number);
}

/* ---- beginning and ending ---- */

static void observe_update(gm__arena *arena) {
  arena->observed = arena->events || arena->ledger.tracker || arena->quotas;
}

static void observe_open_ledger(gm__arena *arena) {
  gm__ledger_open(&arena->ledger, arena->set->observers->tracker, arena->chunks.services);
  observe_update(arena);
}

void gm__observe_new(gm__arena *arena) {
  gm__recorder *recorder = arena->set->observers->recorder;
  arena->events = recorder ? gm__recorder_buffer(recorder, arena->number + 1) : NULL; /* 0: dedicated blocks */
  arena->quotas = gm__observers_quotas(arena->set->observers);
  arena->events_below = arena->quotas_below = UINT32_MAX;
  if (gm__observers_track(arena->set->observers)) observe_open_ledger(arena);
  observe_update(arena);
}

/* Calls `enter` for each block that is out, until it answers false. *below follows the walk, and ends at all. */
static bool observe_each(gm__arena *arena, bool (*enter)(gm__arena *arena, uint32_t number, uint64_t stream),
                         uint32_t *below, uint64_t *out_count) {
  bool going = true;
  *below = 0;
  for (uint32_t number = 0; going && (number = gm__arena_walk(arena, number));) {
    *below = number + 1;
    if (!gm__arena_is_out(arena, number)) continue;
    going = enter(arena, number, gm__arena_asked_on(arena, gm__arena_chunk(arena, number)));
    ++*out_count;
  }
  *below = UINT32_MAX;
  return going;
}

static bool observe_ledger_begin(gm__arena *arena, uint32_t number, uint64_t stream) {
  const gm__ledger_record *record = gm__ledger_at(&arena->ledger, number);
  return (record && record->id) || observe_ledger_enter(arena, number, stream);
}

bool gm__observe_track(gm__arena *arena) {
  uint32_t below;
  uint64_t count = 0;
  if (arena->ledger.tracker) return true; /* the arena was made since */
  observe_open_ledger(arena);
  return observe_each(arena, observe_ledger_begin, &below, &count);
}

void gm__observe_untrack(gm__arena *arena) {
  gm__ledger left;
  gm__arena_lock(arena);
  gm__ledger_move(&arena->ledger, &left);
  observe_update(arena);
  gm__arena_unlock(arena);
  gm__ledger_close(&left);
}

uint64_t gm__observe_record(gm__arena *arena, gm__event_buffer *events) {
  uint64_t count = 0;
  arena->events = events;
  observe_update(arena);
  observe_each(arena, observe_write_enter, &arena->events_below, &count);
  return count;
}

void gm__observe_unrecord(gm__arena *arena) {
  arena->events = NULL;
  observe_update(arena);
}

void gm__observe_count(gm__arena *arena, gm__quotas *quotas) {
  uint64_t count = 0;
  if (arena->quotas) return; /* made since */
  arena->quotas = quotas;
  gm__arena_close_fast(arena);
  observe_update(arena);
  observe_each(arena, observe_quota_enter, &arena->quotas_below, &count);
}
