#include "core/pool/tracked.h"

/* Invariants: a live span is tracked when its record has an id; then the ledger's totals have it. Blocks that are
 * driver allocations of their own are in the tracker itself, which is told of them without any of the pool's locks. */

static uint64_t tracked_bytes(const gm__arena *arena, gm__span *span) {
  return gm__arena_bytes(arena, span) - *gm__span_slack(span);
}

static gm__ledger *tracked_ledger(const gm__entry *entry) { return entry->arena ? entry->arena->ledger : NULL; }

/* ---- what the tracker asks ---- */

static void tracked_figures(void *user, gm__track_figures *sum) {
  const gm_pool *pool = user;
  const gm__arena *arena;
  for (uint32_t i = 0; (arena = gm__arena_at(pool, i)); i++) {
    sum->count += gm__ledger_get(&arena->ledger->count);
    sum->bytes += gm__ledger_get(&arena->ledger->bytes);
    sum->peak_bytes += gm__ledger_get(&arena->ledger->peak_bytes);
  }
  if (sum->peak_bytes < sum->bytes) sum->peak_bytes = sum->bytes; /* read while others write */
}

static gm_track_entry tracked_entry(const gm__arena *arena, uint32_t number, const gm__ledger_record *record) {
  gm__span *span = gm__arena_span(arena, number);
  const gm_memory *memory = &arena->homes[span->home]->node->memory;
  return (gm_track_entry){.id = record->id,
                          .address = span->address,
                          .bytes = tracked_bytes(arena, span),
                          .elements = record->elements,
                          .born_ns = record->born_ns,
                          .mark = record->mark,
                          .pool = arena->pool->id,
                          .stream = record->stream,
                          .tag = *gm__span_tag(span),
                          .location = record->moved ? record->location : gm__pool_location(arena->pool, memory)};
}

static void tracked_entries(void *user, void (*look)(void *looker, const gm_track_entry *entry), void *looker) {
  const gm_pool *pool = user;
  gm__arena *arena;
  for (uint32_t i = 0; (arena = gm__arena_at(pool, i)); i++) {
    gm__arena_lock(arena);
    for (uint32_t number = 1; number < gm__spans_count(&arena->spans); number++) {
      const gm__ledger_record *record = gm__ledger_at(arena->ledger, number);
      if (!record || !record->id) continue;
      const gm_track_entry entry = tracked_entry(arena, number, record);
      look(looker, &entry);
    }
    gm__arena_unlock(arena);
  }
}

static void tracked_totals(void *user, void (*look)(void *looker, const gm_tag_total *total), void *looker) {
  const gm_pool *pool = user;
  gm__arena *arena;
  for (uint32_t i = 0; (arena = gm__arena_at(pool, i)); i++) {
    gm__arena_lock(arena);
    gm__ledger_each_total(arena->ledger, look, looker);
    gm__arena_unlock(arena);
  }
}

static bool tracked_untrack(void *user, uint64_t id) {
  const gm_pool *pool = user;
  gm__arena *arena;
  bool found = false;
  for (uint32_t i = 0; id && !found && (arena = gm__arena_at(pool, i)); i++) {
    gm__arena_lock(arena);
    const uint32_t number = gm__ledger_find(arena->ledger, id);
    found = number != 0;
    if (found) {
      gm__span *span = gm__arena_span(arena, number);
      gm__ledger_leave(arena->ledger, number, tracked_bytes(arena, span), *gm__span_tag(span));
    }
    gm__arena_unlock(arena);
  }
  return found;
}

gm_status gm__tracked_begin(gm_pool *pool, gm_context *ctx, gm_error *err) {
  gm_status status = gm_tracker_create(ctx, &pool->tracker, err);
  if (status) return status;
  pool->track_source = (gm__track_source){.user = pool,
                                          .figures = tracked_figures,
                                          .entries = tracked_entries,
                                          .totals = tracked_totals,
                                          .untrack = tracked_untrack};
  gm__tracker_set_source(pool->tracker, &pool->track_source);
  return GM_OK;
}

/* ---- blocks ---- */

uint64_t gm__tracked_id(const gm__entry *entry) {
  const gm__ledger *ledger = tracked_ledger(entry);
  const gm__ledger_record *record = ledger ? gm__ledger_at(ledger, entry->span) : NULL;
  if (entry->arena) return record ? record->id : 0;
  return entry->rare ? entry->rare->track_id : 0;
}

uint64_t gm__tracked_leave(const gm__entry *entry) {
  const uint64_t id = gm__tracked_id(entry);
  if (!id) return 0;
  if (entry->arena) {
    gm__ledger_leave(entry->arena->ledger, entry->span, entry->requested, entry->tag);
    return 0;
  }
  entry->rare->track_id = 0;
  return id;
}

void gm__tracked_annotate(gm_pool *pool, const gm_block *block, uint64_t elements, gm_location location) {
  gm__entry entry;
  if (!pool->tracker || !gm__entry_open(pool, block, &entry)) return;
  const uint64_t id = gm__tracked_id(&entry);
  const bool here = id && entry.arena;
  if (here) {
    gm__ledger_record *record = gm__ledger_at(entry.arena->ledger, entry.span);
    record->elements = elements;
    record->location = location;
    record->moved = true;
  }
  gm__entry_close(&entry);
  if (!here) gm__tracker_annotate(pool->tracker, id, elements, location);
}
