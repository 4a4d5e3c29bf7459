#include "core/pool/watch.h"

#include "core/pool/arena.h"
#include "core/pool/record.h"

/* Invariant: `watched` says whether the ledger is open or there is a tape. */

static bool watch_ledger_enter(gm__arena *arena, uint32_t number, uint64_t stream) {
  gm__ledger *ledger = &arena->ledger;
  gm__span *span = gm__arena_span(arena, number);
  const uint32_t numbers = gm__spans_count(&arena->spans), tag = span->tag;
  gm__ledger_total *total = gm__ledger_ready(ledger, numbers, tag);
  if (__builtin_expect(!total, 0)) total = gm__ledger_reserve(ledger, numbers, tag);
  if (total) gm__ledger_enter(ledger, total, number, gm__arena_requested(arena, span), stream);
  return total != NULL;
}

static bool watch_tape_enter(gm__arena *arena, uint32_t number, uint64_t stream) {
  gm__tape_add(arena->tape, number, gm__arena_requested(arena, gm__arena_span(arena, number)), stream);
  return true;
}

void gm__watch_enter(gm__arena *arena, uint32_t number, const gm_stream *stream) {
  const uint64_t id = stream ? stream->id : 0;
  if (arena->tape) watch_tape_enter(arena, number, id);
  if (arena->ledger.tracker) watch_ledger_enter(arena, number, id);
}

void gm__watch_leave(gm__arena *arena, uint32_t number, const gm_stream *stream) {
  gm__span *span = gm__arena_span(arena, number);
  if (arena->tape) gm__tape_add(arena->tape, number, 0, stream ? stream->id : 0);
  if (!arena->ledger.tracker) return;
  gm__ledger_leave(&arena->ledger, number, gm__arena_requested(arena, span), span->tag);
}

/* ---- beginning and ending ---- */

static void watch_update(gm__arena *arena) { arena->watched = arena->tape || arena->ledger.tracker; }

static void watch_open_ledger(gm__arena *arena) {
  gm__ledger_open(&arena->ledger, arena->pool->tracker, arena->spans.services);
  watch_update(arena);
}

void gm__watch_new(gm__arena *arena) {
  arena->tape = gm__record_tape(arena->pool, arena->number);
  if (gm__pool_tracks(arena->pool)) watch_open_ledger(arena);
  watch_update(arena);
}

/* Call `enter` with each block that is out until it answers false. */
static bool watch_each(gm__arena *arena, bool (*enter)(gm__arena *arena, uint32_t number, uint64_t stream),
                       uint64_t *out_count) {
  bool going = true;
  for (uint32_t number = 1; going && number < gm__spans_count(&arena->spans); number++) {
    if (!gm__arena_is_out(arena, number)) continue;
    going = enter(arena, number, gm__arena_asked_on(arena, gm__arena_span(arena, number)));
    ++*out_count;
  }
  return going;
}

bool gm__watch_track(gm__arena *arena) {
  uint64_t count = 0;
  if (arena->ledger.tracker) return true; /* made since */
  watch_open_ledger(arena);
  return watch_each(arena, watch_ledger_enter, &count);
}

void gm__watch_untrack(gm__arena *arena) {
  gm__ledger_close(&arena->ledger);
  watch_update(arena);
}

uint64_t gm__watch_record(gm__arena *arena, gm__tape *tape) {
  uint64_t count = 0;
  arena->tape = tape;
  watch_update(arena);
  watch_each(arena, watch_tape_enter, &count);
  return count;
}

void gm__watch_unrecord(gm__arena *arena) {
  arena->tape = NULL;
  watch_update(arena);
}
