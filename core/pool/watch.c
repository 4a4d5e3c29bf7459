#include "core/pool/watch.h"

#include "core/pool/arena.h"

static uint64_t watch_bytes(const gm__arena *arena, gm__span *span) {
  return gm__arena_bytes(arena, span) - *gm__span_slack(span);
}

void gm__watch_enter(gm__arena *arena, uint32_t number, const gm_stream *stream) {
  gm__ledger *ledger = arena->ledger;
  gm__span *span = gm__arena_span(arena, number);
  if (!ledger) return;
  gm__ledger_total *total = gm__ledger_reserve(ledger, gm__spans_count(&arena->spans), *gm__span_tag(span));
  if (total) gm__ledger_enter(ledger, total, number, watch_bytes(arena, span), stream ? stream->id : 0);
}

void gm__watch_leave(gm__arena *arena, uint32_t number, const gm_stream *stream) {
  gm__span *span = gm__arena_span(arena, number);
  (void)stream; /* for recordings */
  if (arena->ledger) gm__ledger_leave(arena->ledger, number, watch_bytes(arena, span), *gm__span_tag(span));
}
