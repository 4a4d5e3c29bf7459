#include "core/pool/serve.h"

#include <inttypes.h>

#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/pool/acquire.h"
#include "core/pool/give.h"
#include "core/pool/growth.h"
#include "core/pool/quota.h"
#include "core/pool/room.h"

/* The order in which a request is served: a span that its stream may use at once, from the arena's quick lists and
 * holes; the same after the quick lists were emptied, and after streams were asked how far they are; one of the
 * stream's own that needs a barrier or a wait; a segment that another arena does not use; new memory; a span of another
 * stream that needs a wait, or of another arena, because both are better than a failure; what a trim sets free. So gm
 * makes no stream depend on another one while there is memory, and waits for no work; a trim gives streams a moment to
 * say that they are done. */

/* ---- one arena ---- */

/* A span of exactly that size, which the stream freed last. */
static uint32_t serve_quick(gm__arena *arena, const gm__want *want, int slot) {
  gm__lane *lane = arena->lanes[slot == GM__ORDER_HOST ? GM__LANE_IDLE : slot];
  if (!lane->ordered || want->align > gm__arena_granule(arena)) return 0;
  return gm__quick_take(lane, &arena->spans, want->exact >> arena->shift);
}

static uint32_t serve_find(gm__arena *arena, const gm__want *want, int slot, bool others, gm__order_verdict *verdict) {
  uint64_t pending = 0;
  if (arena->frees >= arena->ask_after && !gm__stream_captured(want->stream)) {
    arena->frees = 0;
    gm__order_refresh(&arena->order, arena->order.used);
    gm__holes_settle(arena);
  }
  uint32_t hole = gm__holes_find(arena, want, slot, GM__ORDER_READY, &pending, verdict);
  if (!hole && gm__holes_flush(arena)) hole = gm__holes_find(arena, want, slot, GM__ORDER_READY, &pending, verdict);
  if (hole || !pending || gm__stream_captured(want->stream)) return hole;
  gm__order_refresh(&arena->order, pending);
  gm__holes_settle(arena);
  hole = gm__holes_find(arena, want, slot, GM__ORDER_READY, &pending, verdict);
  if (hole) return hole;
  gm__holes_gather(arena, slot);
  hole = gm__holes_find(arena, want, slot, GM__ORDER_OWN_WAIT, &pending, verdict);
  if (hole || !others) return hole;
  return gm__holes_find(arena, want, slot, GM__ORDER_OTHERS_WAIT, &pending, verdict);
}

/* Bring the span, which is AWAY, into the request's order; false when that is not possible. Steps out of the lock. */
static bool serve_order(gm__arena *arena, const gm__want *want, int slot, uint32_t number, gm__order_verdict verdict,
                        gm_acquire *answer) {
  gm_error failure = {.status = GM_OK};
  gm_status status = GM_OK;
  if (verdict == GM__ORDER_READY) return true;
  gm__mark mark = gm__arena_mark(arena, number);
  if (want->insert) {
    status = gm__order_insert(&arena->order, &mark, slot, &failure);
  } else if (verdict == GM__ORDER_BARRIER) {
    *answer = GM_ACQUIRE_NEEDS_BARRIER;
  } else if (!gm__arena_make_rare(arena, number)) { /* for the point */
    return false;
  } else {
    *answer = GM_ACQUIRE_NEEDS_WAIT;
    status = gm__order_attach_point(&arena->order, &mark, slot, &failure);
  }
  gm__arena_set_mark(arena, number, &mark);
  if (status) {
    gm__pool_note_failure(arena->pool, &failure);
    return false;
  }
  gm__stats_count(&arena->pool->stats.waits, 1);
  return true;
}

static void serve_put(gm__arena *arena, uint32_t number, const gm__mark *mark) {
  gm__hole_put(arena, number, mark, gm__hole_mixes(arena, mark));
}

/* A span for the request, AWAY, and how it was found; 0: none. */
static uint32_t serve_search(gm__arena *arena, const gm__want *want, bool others, gm_acquire *answer,
                             gm__taken *found) {
  const int slot = gm__arena_slot(arena, want->stream);
  gm__order_verdict verdict = GM__ORDER_READY;
  uint32_t number = serve_quick(arena, want, slot);
  *answer = GM_ACQUIRE_OK;
  *found = (gm__taken){.same_stream = slot != GM__ORDER_HOST};
  if (number) return number;
  const uint32_t hole = serve_find(arena, want, slot, others, &verdict);
  if (!hole) return 0;
  if (!gm__spans_reserve(&arena->spans, GM__HOLE_SPANS) || !gm__lookup_reserve(&arena->lookup, &arena->spans)) return 0;
  number = gm__hole_carve(arena, want, hole);
  gm__lookup_insert(&arena->lookup, &arena->spans, number);
  found->from_all = true;
  found->same_stream = slot != GM__ORDER_HOST && gm__arena_span(arena, number)->lane == slot;
  if (serve_order(arena, want, slot, number, verdict, answer)) return number;
  const gm__mark mark = gm__arena_mark(arena, number);
  gm__lookup_remove(&arena->lookup, &arena->spans, number);
  serve_put(arena, number, &mark);
  return 0;
}

/* ---- the span in hand ---- */

static void serve_describe(gm__taken *taken, gm__arena *arena, uint32_t number) {
  const gm__span *span = gm__arena_span(arena, number);
  const gm__node *node = arena->homes[span->home]->node;
  taken->arena = arena;
  taken->span = number;
  taken->memory = node->memory;
  taken->offset = span->address - node->address;
  taken->address = span->address;
  taken->bytes = gm__arena_bytes(arena, span);
  taken->zeroed = span->seq == 0 && gm__segment_is_zeroed(arena->homes[span->home]);
}

static void serve_record(const gm__taken *taken, const gm__want *want, bool fresh, gm_block *block) {
  gm__arena *arena = taken->arena;
  gm__tally *tally = &arena->tally;
  gm__tally_add(fresh ? &tally->misses : taken->same_stream ? &tally->stream_hits : &tally->global_hits, 1);
  if (taken->from_all) gm__tally_add(&tally->hole_hits, 1);
  gm__arena_hand_out(arena, gm__arena_span(arena, taken->span), want->bytes, want->tag,
                     gm__arena_request_lane(arena, want->stream));
  if (arena->watched) gm__watch_enter(arena, taken->span, want->stream);
  if (arena->quotas) gm__quota_enter(arena->quotas, want);
  *block = gm__arena_block(arena, taken->span);
}

/* Nothing is left to do with pooled memory outside the lock that it was found under. */
static bool serve_is_direct(const gm_pool *pool, const gm__want *want) {
  return !pool->guard && !(want->flags & GM_ZERO);
}

static bool serve_pooled(gm__arena *arena, const gm__want *want, bool others, gm__taken *taken, gm_acquire *answer,
                         gm_block *block) {
  gm__arena_lock(arena);
  const uint32_t number = serve_search(arena, want, others, answer, taken);
  if (number) {
    serve_describe(taken, arena, number);
    taken->done = serve_is_direct(arena->pool, want);
    if (taken->done) {
      serve_record(taken, want, false, block);
    } else {
      gm__arena_span(arena, number)->state =
          (uint8_t)((gm__arena_span(arena, number)->state & GM__SPAN_RARE) | GM__SPAN_AWAY);
    }
  }
  gm__arena_unlock(arena);
  return number != 0;
}

void gm__serve_hand_out(const gm__taken *taken, const gm__want *want, bool fresh, gm_block *block) {
  gm__arena *arena = taken->arena;
  gm__arena_lock(arena);
  serve_record(taken, want, fresh, block);
  gm__arena_unlock(arena);
}

/* ---- the pool ---- */

/* From any arena whose memory serves, its own included, in which only some is aligned as asked. */
static bool serve_anywhere(const gm__arena *own, const gm__want *want, gm__taken *taken, gm_acquire *answer,
                           gm_block *block) {
  const gm__memory_kind kind = gm__kind_of(&own->pool->rules, want);
  gm__arena *arena;
  for (uint32_t i = 0; (arena = gm__arena_at(own->pool, i)); i++) {
    const bool serves = arena == own || gm__kind_serves(&arena->kind, &kind);
    if (serves && serve_pooled(arena, want, true, taken, answer, block)) return true;
  }
  return false;
}

static gm_status serve_fresh(gm__arena *arena, const gm__want *want, gm__taken *taken, gm_acquire *answer,
                             gm_error *err) {
  uint32_t number = 0;
  *answer = GM_ACQUIRE_FRESH;
  *taken = (gm__taken){.arena = arena};
  const gm_status status = gm__growth_take(arena, want, &number, err);
  if (status) return status;
  gm__arena_lock(arena);
  serve_describe(taken, arena, number);
  gm__arena_unlock(arena);
  return GM_OK;
}

/* No more blocks and holes can be told apart there. */
static bool serve_is_full(gm__arena *arena) {
  gm__arena_lock(arena);
  const bool full = gm__spans_are_full(&arena->spans, GM__HOLE_SPANS);
  gm__arena_unlock(arena);
  return full;
}

/* New memory of the arena's kind; or, where the request is content with less than that, of its own. */
static gm_status serve_grow(gm__arena *arena, const gm__want *want, gm__taken *taken, gm_acquire *answer,
                            gm_error *err) {
  gm_pool *pool = arena->pool;
  const gm__memory_kind kind = gm__kind_of(&pool->rules, want);
  if (serve_is_full(arena)) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_alloc",
                    "a thread's part of the pool has no room for more than %" PRIu32 " blocks and holes",
                    arena->spans.most);
  }
  gm_status status = serve_fresh(arena, want, taken, answer, err);
  if (!gm__supply_is_shortage(status) || gm__kind_serves(&kind, &arena->kind)) return status;
  gm__arena *beside = gm__arena_beside(pool, &kind);
  return beside && beside != arena ? serve_fresh(beside, want, taken, answer, err) : status;
}

gm_status gm__serve(gm_pool *pool, const gm__want *want, gm__taken *taken, gm_acquire *out_answer, gm_block *block,
                    gm_error *err) {
  const gm__memory_kind kind = gm__kind_of(&pool->rules, want);
  if (want->exact / pool->rules.granule > UINT32_MAX) {
    const gm_status status = gm__room_check(pool, want, err);
    if (status) return status;
    return gm__fail(err, GM_ERR_ALLOCATION_TOO_LARGE, 0, "gm_alloc", "more than a segment of the pool can hold");
  }
  gm__arena *arena = gm__arena_of(pool, &kind);
  if (!arena) return gm__arena_missing(pool, err);
  if (serve_pooled(arena, want, false, taken, out_answer, block)) return GM_OK;
  if (want->flags & GM_POOLED_ONLY) {
    return serve_anywhere(arena, want, taken, out_answer, block) ? GM_OK : GM_ERR_OUT_OF_DEVICE_MEMORY;
  }
  if (gm__acquire_is_captured(want, err)) return GM_ERR_BUSY;
  gm_status status = gm__room_check(pool, want, err);
  if (status) return status;
  if (gm__growth_move(arena, want) && serve_pooled(arena, want, false, taken, out_answer, block)) return GM_OK;
  status = serve_grow(arena, want, taken, out_answer, err);
  if (status == GM_OK || serve_anywhere(arena, want, taken, out_answer, block)) return GM_OK;
  if (!gm__supply_is_shortage(status)) return status;
  return gm__room_make(pool, want, status) ? serve_grow(arena, want, taken, out_answer, err) : status;
}

/* ---- giving back ---- */

/* The slot for a free on the stream. OUT_OF_HOST_MEMORY: it cannot be noted. */
static gm_status serve_free_slot(gm__arena *arena, gm_stream *stream, int *out) {
  *out = gm__arena_free_slot(arena, stream);
  return stream && *out == GM__ORDER_HOST ? GM_ERR_OUT_OF_HOST_MEMORY : GM_OK;
}

/* A span in no list and not in the table becomes free. */
static void serve_free(gm__arena *arena, uint32_t number, int slot) {
  gm__mark mark = gm__arena_mark(arena, number);
  gm__order_note_free(&arena->order, &mark, slot);
  arena->frees++;
  gm__lookup_remove(&arena->lookup, &arena->spans, number);
  serve_put(arena, number, &mark);
}

void gm__serve_undo(const gm__taken *taken, gm_stream *stream) {
  gm__arena *arena = taken->arena;
  int slot;
  gm__arena_lock(arena);
  const bool noted = serve_free_slot(arena, stream, &slot) == GM_OK;
  if (noted) serve_free(arena, taken->span, slot); /* else work may still run there: nobody gets it */
  gm__arena_unlock(arena);
}

static gm_status serve_check(const gm__arena *arena, uint32_t number) {
  const gm__rare *rare = number ? gm__arena_rare(arena, number) : NULL;
  if (!number || (rare && rare->piece)) return GM_ERR_INVALID_ARGUMENT;
  return rare && rare->mapping.pointer ? GM_ERR_BUSY : GM_OK;
}

/* The live span of a block, taken away from its owner; 0 and the reason. */
static uint32_t serve_seize(gm__arena *arena, const gm_block *block, const gm_stream *stream, gm_status *status) {
  const uint32_t number = gm__arena_find(arena, block);
  *status = serve_check(arena, number);
  if (*status) return 0;
  gm__span *span = gm__arena_span(arena, number);
  if (arena->quotas && gm__arena_is_out(arena, number)) {
    gm__quota_leave(arena->quotas, span->tag, gm__arena_requested(arena, span));
  }
  gm__arena_take_back(arena, span, number, stream);
  span->state = (uint8_t)((span->state & GM__SPAN_RARE) | GM__SPAN_AWAY);
  return number;
}

/* The short way of a block that counts for a quota. */
static bool serve_give_counted(gm__arena *arena, uint32_t number, int slot, gm_stream *stream) {
  gm__lane *lane = arena->lanes[slot == GM__ORDER_HOST ? GM__LANE_IDLE : gm__order_place(slot)];
  gm__span *span = gm__arena_span(arena, number);
  const uint32_t tag = span->tag;
  const uint64_t requested = gm__arena_requested(arena, span);
  if (!lane->ordered || !gm__give_to(arena, number, lane, stream)) return false;
  gm__quota_leave(arena->quotas, tag, requested);
  return true;
}

static gm_status serve_take_back(gm__arena *arena, const gm_block *block, gm_stream *stream) {
  uint32_t number = gm__arena_find(arena, block);
  if (number && gm__give(arena, number, stream)) return GM_OK;
  int slot;
  gm_status status = serve_free_slot(arena, stream, &slot);
  if (status) return status;
  if (arena->quotas && (number = gm__arena_find(arena, block)) && serve_give_counted(arena, number, slot, stream)) {
    return GM_OK;
  }
  number = serve_seize(arena, block, stream, &status);
  if (number) serve_free(arena, number, slot);
  return status;
}

void gm__serve_quarantine(gm_pool *pool, const gm_block *block) {
  gm__arena *arena = gm__arena_of_block(pool, block);
  gm_status status;
  if (!arena) return;
  gm__arena_lock(arena);
  serve_seize(arena, block, NULL, &status);
  gm__arena_unlock(arena);
}

gm_status gm__serve_give_back(gm_pool *pool, const gm_block *block, gm_stream *stream) {
  gm__arena *arena = gm__arena_of_block(pool, block);
  if (!arena) return GM_ERR_INVALID_ARGUMENT;
  gm__arena_lock(arena);
  const gm_status status = serve_take_back(arena, block, stream);
  gm__arena_unlock(arena);
  return status;
}

gm_status gm__serve_give_back_at(gm__arena *arena, uint64_t address, uint64_t bytes, gm_stream *stream) {
  gm_status status = GM_ERR_INVALID_ARGUMENT;
  gm__arena_lock(arena);
  const uint32_t number = gm__lookup_find(&arena->lookup, &arena->spans, address);
  const gm__span *span = gm__arena_span(arena, number);
  if (number && gm__span_is(span) == GM__SPAN_LIVE && bytes <= gm__arena_bytes(arena, span)) {
    const gm_block block = gm__arena_block(arena, number);
    status = serve_take_back(arena, &block, stream);
  }
  gm__arena_unlock(arena);
  return status;
}
