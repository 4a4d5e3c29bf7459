#include "core/pool/watch.h"

#include "core/pool/arena.h"

/* Invariant: `watched` says whether the ledger is open. */

static bool watch_ledger_enter(gm__arena *arena, uint32_t number, uint64_t stream) {
  gm__ledger *ledger = &arena->ledger;
  gm__span *span = gm__arena_span(arena, number);
  gm__ledger_total *total = gm__ledger_reserve(ledger, gm__spans_count(&arena->spans), *gm__span_tag(span));
  if (total) gm__ledger_enter(ledger, total, number, gm__arena_requested(arena, span), stream);
  return total != NULL;
}

void gm__watch_enter(gm__arena *arena, uint32_t number, const gm_stream *stream) {
  watch_ledger_enter(arena, number, stream ? stream->id : 0);
}

void gm__watch_leave(gm__arena *arena, uint32_t number, const gm_stream *stream) {
  gm__span *span = gm__arena_span(arena, number);
  (void)stream; /* for recordings */
  gm__ledger_leave(&arena->ledger, number, gm__arena_requested(arena, span), *gm__span_tag(span));
}

/* ---- beginning and ending ---- */

static void watch_open_ledger(gm__arena *arena) {
  gm__ledger_open(&arena->ledger, arena->pool->tracker, arena->spans.services);
  arena->watched = true;
}

void gm__watch_new(gm__arena *arena) {
  if (gm__pool_tracks(arena->pool)) watch_open_ledger(arena);
}

/* Its owner has it still: a guard may hold a block back that was freed. */
static bool watch_is_out(const gm__arena *arena, uint32_t number) {
  if (gm__span_is(gm__arena_span(arena, number)) != GM__SPAN_LIVE) return false;
  const gm__rare *rare = gm__arena_rare(arena, number);
  return !rare || !rare->guard || !gm__guard_freed(rare->guard);
}

/* Call `enter` with each block that is out until it answers false. */
static bool watch_each(gm__arena *arena, bool (*enter)(gm__arena *arena, uint32_t number, uint64_t stream)) {
  bool going = true;
  for (uint32_t number = 1; going && number < gm__spans_count(&arena->spans); number++) {
    if (!watch_is_out(arena, number)) continue;
    going = enter(arena, number, gm__arena_asked_on(arena, gm__arena_span(arena, number)));
  }
  return going;
}

bool gm__watch_track(gm__arena *arena) {
  if (arena->ledger.tracker) return true; /* made since */
  watch_open_ledger(arena);
  return watch_each(arena, watch_ledger_enter);
}

void gm__watch_untrack(gm__arena *arena) {
  gm__ledger_close(&arena->ledger);
  arena->watched = false;
}
