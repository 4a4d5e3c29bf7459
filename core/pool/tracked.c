#include "core/pool/tracked.h"

#include "core/base/error.h"
#include "core/pool/record.h"
#include "core/pool/spanned.h"

/* Invariants: a live span is tracked when its record has an id; then the ledger's totals have it. Blocks that are
 * driver allocations of their own are in the tracker itself, which is told of them without any of the pool's locks:
 * whoever told it looks afterwards, inside the lock, whether that is still wanted. `track_turns` changes inside the
 * pool's lock: an arena or block that comes later sees it, and what was there before is found by who changed it. */

/* ---- what the tracker asks ---- */

static void tracked_figures(void *user, gm__track_figures *sum) {
  const gm_pool *pool = user;
  const gm__arena *arena;
  for (uint32_t i = 0; (arena = gm__arena_at(pool, i)); i++) {
    sum->count += gm__ledger_get(&arena->ledger.count);
    sum->bytes += gm__ledger_get(&arena->ledger.bytes);
    sum->peak_bytes += gm__ledger_get(&arena->ledger.peak_bytes);
  }
  if (sum->peak_bytes < sum->bytes) sum->peak_bytes = sum->bytes; /* read while others write */
}

static gm_track_entry tracked_entry(const gm__arena *arena, uint32_t number, const gm__ledger_record *record) {
  gm__span *span = gm__arena_span(arena, number);
  const gm_memory *memory = &arena->homes[span->home]->node->memory;
  return (gm_track_entry){.id = record->id,
                          .address = span->address,
                          .bytes = gm__arena_requested(arena, span),
                          .elements = record->elements,
                          .born_ns = record->born_ns,
                          .mark = record->mark,
                          .pool = arena->pool->id,
                          .stream = record->stream,
                          .tag = span->tag,
                          .location = record->moved ? record->location : gm__pool_location(arena->pool, memory)};
}

static void tracked_entries(void *user, void (*look)(void *looker, const gm_track_entry *entry), void *looker) {
  const gm_pool *pool = user;
  gm__arena *arena;
  for (uint32_t i = 0; (arena = gm__arena_at(pool, i)); i++) {
    gm__arena_lock(arena);
    for (uint32_t number = 1; number < gm__spans_count(&arena->spans); number++) {
      const gm__ledger_record *record = gm__ledger_at(&arena->ledger, number);
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
    gm__ledger_each_total(&arena->ledger, look, looker);
    gm__arena_unlock(arena);
  }
}

static void tracked_marked(void *user, uint64_t mark) { gm__record_tracker_mark(user, mark); }

static bool tracked_untrack(void *user, uint64_t id) {
  const gm_pool *pool = user;
  gm__arena *arena;
  bool found = false;
  for (uint32_t i = 0; id && !found && (arena = gm__arena_at(pool, i)); i++) {
    gm__arena_lock(arena);
    const uint32_t number = gm__ledger_find(&arena->ledger, id);
    found = number != 0;
    if (found) {
      gm__span *span = gm__arena_span(arena, number);
      gm__ledger_leave(&arena->ledger, number, gm__arena_requested(arena, span), span->tag);
    }
    gm__arena_unlock(arena);
  }
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
  atomic_store(&pool->tracker, tracker);
  return GM_OK;
}

/* ---- blocks ---- */

uint64_t gm__tracked_id(const gm__entry *entry) {
  if (!entry->arena) return entry->rare ? entry->rare->track_id : 0;
  const gm__ledger_record *record = gm__ledger_at(&entry->arena->ledger, entry->span);
  return record ? record->id : 0;
}

/* The block's node, if it is out and has no id yet, and the pool is tracked. With the lock. */
static gm__node *tracked_find(gm_pool *pool, const gm_block *block) {
  gm__node *node = gm__node_find(&pool->nodes, block, false);
  return node && gm__node_is_out(node) && !node->rare.track_id && gm__pool_tracks(pool) ? node : NULL;
}

static gm_track_entry tracked_describe(const gm_pool *pool, const gm__node *node) {
  return (gm_track_entry){.address = node->address,
                          .bytes = node->requested,
                          .pool = pool->id,
                          .stream = node->asked_on,
                          .tag = node->tag,
                          .location = gm__pool_location(pool, &node->memory)};
}

bool gm__tracked_enter(gm_pool *pool, const gm_block *block) {
  gm_track_entry entry;
  gm__mutex_lock(&pool->lock);
  const uint32_t turn = pool->track_turns;
  gm__node *node = tracked_find(pool, block);
  if (node) entry = tracked_describe(pool, node);
  gm__mutex_unlock(&pool->lock);
  if (!node) return true;
  const uint64_t id = gm_tracker_track(pool->tracker, &entry);
  gm__mutex_lock(&pool->lock);
  node = pool->track_turns == turn ? tracked_find(pool, block) : NULL; /* else the id may be forgotten already */
  if (node) node->rare.track_id = id;
  gm__mutex_unlock(&pool->lock);
  if (!node) gm_tracker_untrack(pool->tracker, id);
  return id != 0;
}

uint64_t gm__tracked_beside(gm_pool *pool, const gm_track_entry *entry) {
  if (!gm__pool_tracks(pool)) return 0;
  const uint64_t id = gm_tracker_track(pool->tracker, entry);
  if (gm__pool_tracks(pool)) return id;
  gm_tracker_untrack(pool->tracker, id);
  return 0;
}

uint64_t gm__tracked_leave(const gm__entry *entry, const gm_stream *stream) {
  if (entry->arena) {
    if (entry->arena->watched) gm__watch_leave(entry->arena, entry->span, stream);
    return 0;
  }
  const uint64_t id = gm__tracked_id(entry);
  gm__record_leave(entry->pool, entry->node, stream);
  entry->rare->track_id = 0;
  return id;
}

void gm__tracked_annotate(gm_pool *pool, const gm_block *block, uint64_t elements, gm_location location) {
  gm__entry entry;
  gm_block_span span;
  for (uint32_t i = 0; gm__spanned_is(block) && gm__spanned_piece(pool, block, i, &span); i++) {
    gm__tracked_annotate(pool, &span.block, i ? 0 : elements, location); /* so that the sum is right */
  }
  if (!gm__pool_tracks(pool) || !gm__entry_open(pool, block, &entry)) return;
  const uint64_t id = gm__tracked_id(&entry);
  const bool here = id && entry.arena;
  if (here) {
    gm__ledger_record *record = gm__ledger_at(&entry.arena->ledger, entry.span);
    record->elements = elements;
    record->location = location;
    record->moved = true;
  }
  gm__entry_close(&entry);
  if (!here) gm__tracker_annotate(pool->tracker, id, elements, location);
}

/* ---- on and off while the pool lives ---- */

static void tracked_forget_nodes(gm_pool *pool) {
  uint32_t cursor = 0;
  gm__mutex_lock(&pool->lock);
  for (gm__node *node; (node = gm__node_next(&pool->nodes, &cursor));) node->rare.track_id = 0;
  gm__mutex_unlock(&pool->lock);
}

static void tracked_turn(gm_pool *pool) {
  gm__mutex_lock(&pool->lock);
  atomic_fetch_add(&pool->track_turns, 1);
  gm__mutex_unlock(&pool->lock);
}

static void tracked_stop(gm_pool *pool) {
  gm__arena *arena;
  tracked_turn(pool);
  for (uint32_t i = 0; (arena = gm__arena_at(pool, i)); i++) {
    gm__arena_lock(arena);
    gm__watch_untrack(arena);
    gm__arena_unlock(arena);
  }
  tracked_forget_nodes(pool);
  gm__tracker_forget(pool->tracker, pool->id);
}

static bool tracked_start_arenas(gm_pool *pool) {
  gm__arena *arena;
  bool done = true;
  for (uint32_t i = 0; done && (arena = gm__arena_at(pool, i)); i++) {
    gm__arena_lock(arena);
    done = gm__watch_track(arena);
    gm__arena_unlock(arena);
  }
  return done;
}

/* The next node that is out, by value; false at the end. */
static bool tracked_next(gm_pool *pool, uint32_t *cursor, gm_block *out) {
  gm__node *node;
  gm__mutex_lock(&pool->lock);
  do {
    node = gm__node_next(&pool->nodes, cursor);
  } while (node && node->state != GM__NODE_LIVE);
  if (node) *out = gm__node_block(node);
  gm__mutex_unlock(&pool->lock);
  return node != NULL;
}

static gm_status tracked_start(gm_pool *pool, gm_error *err) {
  uint32_t cursor = 0;
  gm_block block;
  gm_status status = atomic_load(&pool->tracker) ? GM_OK : gm__tracked_begin(pool, pool->device->ctx, err);
  if (status) return status;
  tracked_turn(pool);
  bool done = tracked_start_arenas(pool);
  while (done && tracked_next(pool, &cursor, &block)) done = gm__tracked_enter(pool, &block);
  if (done) return GM_OK;
  tracked_stop(pool);
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_pool_set_tracking",
                  "no host memory to enter the blocks of pool \"%s\" that are alive: it is not tracked", pool->name);
}

gm_status gm_pool_set_tracking(gm_pool *pool, bool on, gm_error *err) {
  gm_status status = gm__pool_check(pool, "gm_pool_set_tracking", err);
  if (status) return status;
  gm__mutex_lock(&pool->gate);
  const bool was = gm__pool_tracks(pool);
  if (on && !was) status = tracked_start(pool, err);
  if (!on && was) tracked_stop(pool);
  gm__mutex_unlock(&pool->gate);
  return status;
}
