#include "core/pool/hole.h"

#include "core/base/saturate.h"

/* Invariants. The spans of a segment tile it. A hole is in the lane of the streams that may still use it: none, one, or
 * several. Two holes that touch and wait for the same streams are joined, whenever either of them changes, so a segment
 * nobody uses ends as one hole. A hole that no stream uses is joined with one that a stream uses only if no other
 * stream is known to the arena, or before the pool would grow: otherwise a free on one stream would take memory away
 * from the others. */

/* Nearly every free goes this way: no call on it. */
#define HOLE_INLINE static inline __attribute__((always_inline))

enum { HOLE_LOOKS = 16 }; /* lists, for one to lose a span */

static uint32_t hole_granules(const gm__arena *arena, const gm__want *want) {
  return (uint32_t)(want->exact >> arena->shift);
}

static gm__heap *hole_heap(const gm__arena *arena, uint32_t number) {
  return &arena->lanes[gm__arena_span(arena, number)->lane]->heap;
}

/* ---- joining ---- */

/* The order of two joined holes: the later free counts, and its point. Of two frees at one time the clock does not say
 * which was later, so none of their points will do. */
static void hole_join_marks(gm__arena *arena, gm__mark *mark, gm__mark *other) {
  if (mark->given) gm__order_drop_point(&arena->order, mark); /* it tells of one of the two */
  if (other->given) gm__order_drop_point(&arena->order, other);
  if (mark->streams == other->streams && mark->freed_at == other->freed_at) gm__order_drop_point(&arena->order, mark);
  const bool takes = mark->streams == other->streams ? other->freed_at > mark->freed_at : other->streams != 0;
  gm__order_drop_point(&arena->order, takes ? mark : other);
  if (takes) *mark = *other;
}

static bool hole_can_join(const gm__arena *arena, uint32_t neighbour, const gm__mark *mark, bool mixes) {
  if (gm__span_is(gm__arena_span(arena, neighbour)) != GM__SPAN_HOLE) return false;
  const uint64_t streams = gm__arena_mark(arena, neighbour).streams;
  return streams == mark->streams || (mixes && (!streams || !mark->streams));
}

/* The hole beside leaves its list and ends; *mark is of both. */
static void hole_swallow(gm__arena *arena, uint32_t neighbour, gm__mark *mark) {
  gm__mark other = gm__arena_mark(arena, neighbour);
  gm__heap_take(&arena->spans, hole_heap(arena, neighbour), neighbour);
  hole_join_marks(arena, mark, &other);
  gm__arena_drop_rare(arena, neighbour);
  gm__span_unlink(&arena->spans, neighbour);
}

void gm__hole_put(gm__arena *arena, uint32_t number, const gm__mark *mark, bool mixes) {
  gm__span *span = gm__arena_span(arena, number);
  gm__mark joined = *mark;
  while (hole_can_join(arena, span->left, &joined, mixes)) {
    const gm__span *left = gm__arena_span(arena, span->left);
    span->address = left->address;
    span->granules += left->granules;
    hole_swallow(arena, span->left, &joined);
  }
  while (hole_can_join(arena, span->right, &joined, mixes)) {
    span->granules += gm__arena_span(arena, span->right)->granules;
    hole_swallow(arena, span->right, &joined);
  }
  gm__arena_set_mark(arena, number, &joined);
  span->state = (uint8_t)((span->state & GM__SPAN_RARE) | GM__SPAN_HOLE);
  gm__heap_put(&arena->spans, hole_heap(arena, number), number);
}

/* May the neighbour be joined at once with a hole of that lane? */
static inline bool hole_joins(const gm__arena *arena, const gm__span *neighbour, const gm__lane *lane) {
  if (neighbour->part == lane->hole_part) return true; /* not so a rare one */
  const bool idle = neighbour->part == gm__lane_part(GM__LANE_IDLE, GM__SPAN_HOLE);
  return idle && arena->mixes && lane->number != GM__LANE_MIXED;
}

/* A hole has another size, and is the lane's from now on. */
HOLE_INLINE void hole_move(gm__arena *arena, uint32_t number, gm__lane *lane, uint32_t granules) {
  gm__span *span = gm__arena_span(arena, number);
  if (span->lane == lane->number) {
    gm__heap_resize(&arena->spans, &lane->heap, number, granules);
    return;
  }
  gm__heap_take(&arena->spans, &arena->lanes[span->lane]->heap, number);
  span->lane = lane->number;
  span->granules = granules;
  gm__heap_put(&arena->spans, &lane->heap, number);
}

/* A span that is in no list, of the lane and with nothing rare to it, becomes a hole, or part of the holes it touches.
 * These stay where they are as far as they can. */
HOLE_INLINE void hole_free(gm__arena *arena, uint32_t number, gm__lane *lane) {
  gm__spans *spans = &arena->spans;
  gm__span *span = gm__span_at(spans, number);
  const uint32_t left = span->left, right = span->right;
  gm__span *before = gm__span_at(spans, left), *after = gm__span_at(spans, right);
  const uint64_t seq = span->seq;
  uint32_t granules = span->granules;
  if (hole_joins(arena, before, lane)) {
    granules += before->granules;
    if (before->seq < seq) before->seq = seq;
    gm__span_unlink(spans, number);
    if (hole_joins(arena, after, lane)) {
      granules += after->granules;
      if (before->seq < after->seq) before->seq = after->seq;
      gm__heap_take(spans, &arena->lanes[after->lane]->heap, right);
      gm__span_unlink(spans, right);
    }
    hole_move(arena, left, lane, granules);
  } else if (hole_joins(arena, after, lane)) {
    granules += after->granules;
    if (after->seq < seq) after->seq = seq;
    after->address = span->address;
    gm__span_unlink(spans, number);
    hole_move(arena, right, lane, granules);
  } else {
    span->state = GM__SPAN_HOLE;
    gm__heap_put(spans, &lane->heap, number);
  }
}

void gm__hole_free(gm__arena *arena, uint32_t number, gm__lane *lane) { hole_free(arena, number, lane); }

/* The same for one that was handed out or is of a quick list. */
static void hole_free_one(gm__arena *arena, uint32_t number, gm__lane *lane) {
  gm__arena_span(arena, number)->lane = lane->number;
  gm__lookup_remove(&arena->lookup, &arena->spans, number);
  gm__hole_free(arena, number, lane);
}

/* Of lists that are full the next one behind the last that lost one gives one up, never its own; none may be near. */
static void hole_evict_one(gm__arena *arena, gm__lane *lane, const gm__quick *own) {
  for (int i = 0; i < HOLE_LOOKS; i++) {
    gm__quick *quick = &lane->quick[lane->hand++ % GM__QUICK_LISTS];
    if (!quick->head || quick == own) continue;
    hole_free_one(arena, gm__quick_pop(lane, quick, &arena->spans), lane);
    return;
  }
}

/* What nobody asks for any more makes room for what is freed now, one for one, so that no free pays for many: the list
 * of another size that is where this one's belongs, or any when all is full. */
static void hole_make_room(gm__arena *arena, gm__lane *lane, uint32_t granules, uint32_t most) {
  gm__quick *quick = gm__quick_of(lane, granules);
  if (quick->head && quick->granules != granules) {
    hole_free_one(arena, gm__quick_pop(lane, quick, &arena->spans), lane);
  } else if (most && lane->quick_count >= most) {
    hole_evict_one(arena, lane, quick);
  }
}

void gm__hole_give(gm__arena *arena, uint32_t number, gm__lane *lane) {
  gm__span *span = gm__arena_span(arena, number);
  const uint32_t most = gm__pool_quick(arena->pool);
  arena->frees++;
  if (span->granules <= arena->quick_most) {
    hole_make_room(arena, lane, span->granules, most);
    if (gm__quick_put(lane, span, number, span->granules, most)) return;
  }
  span->lane = lane->number;
  gm__lookup_remove(&arena->lookup, &arena->spans, number);
  hole_free(arena, number, lane);
}

static void hole_flush_list(gm__arena *arena, gm__lane *lane, gm__quick *quick) {
  while (quick->head) hole_free_one(arena, gm__quick_pop(lane, quick, &arena->spans), lane);
}

static void hole_flush_lane(gm__arena *arena, gm__lane *lane) {
  for (int i = 0; lane->quick_count && i < GM__QUICK_LISTS; i++) hole_flush_list(arena, lane, &lane->quick[i]);
}

bool gm__holes_flush(gm__arena *arena) {
  bool any = false;
  for (int i = 0; i < GM__LANES; i++) {
    gm__lane *lane = arena->lanes[i];
    if (!lane || !lane->quick_count) continue;
    any = true;
    hole_flush_lane(arena, lane);
  }
  return any;
}

/* ---- streams ---- */

/* Holes in no list, linked by `next`, go where their marks belong now; `slot`: a stream to forget first. */
static void hole_put_all(gm__arena *arena, uint32_t chain, bool mixes, int slot) {
  for (uint32_t next; chain; chain = next) {
    next = gm__arena_span(arena, chain)->next;
    gm__mark mark = gm__arena_mark(arena, chain);
    if (slot != GM__ORDER_HOST) gm__order_forget_mark(&arena->order, &mark, slot);
    gm__hole_put(arena, chain, &mark, mixes && mark.streams);
  }
}

/* All holes of the lane, in no list and in the state AWAY, so that none is swallowed on the way. */
static uint32_t hole_lift(gm__arena *arena, gm__lane *lane) {
  const uint32_t chain = gm__heap_drain(&arena->spans, &lane->heap);
  for (uint32_t at = chain; at; at = gm__arena_span(arena, at)->next) {
    gm__span *span = gm__arena_span(arena, at);
    span->state = (uint8_t)((span->state & GM__SPAN_RARE) | GM__SPAN_AWAY);
  }
  return chain;
}

static bool hole_is_due(const gm__arena *arena, const gm__lane *lane) {
  if (!lane || !lane->heap.top) return false;
  if (lane->number == GM__LANE_MIXED) return true;
  const gm__order_slot *slot = &arena->order.slots[lane->number];
  if (arena->order.given >> lane->number & 1) return true; /* single holes may be done before the others */
  return slot->passed >= slot->last_free || !lane->ordered || slot->passed > lane->settled;
}

/* The same as below for one with nothing rare to it that one stream used and is done with. */
static bool hole_settle_plain(gm__arena *arena, uint32_t number) {
  gm__span *span = gm__arena_span(arena, number);
  if (span->state & GM__SPAN_RARE || span->lane >= GM__LANE_IDLE) return false;
  if (span->seq > arena->order.slots[span->lane].passed) return false;
  span->lane = GM__LANE_IDLE;
  gm__hole_free(arena, number, arena->lanes[GM__LANE_IDLE]);
  return true;
}

/* What of the lane is done. */
static void hole_settle_lane(gm__arena *arena, gm__lane *lane) {
  uint32_t chain = hole_lift(arena, lane), next;
  for (; chain; chain = next) {
    next = gm__arena_span(arena, chain)->next;
    if (hole_settle_plain(arena, chain)) continue;
    gm__mark mark = gm__arena_mark(arena, chain);
    gm__order_settle(&arena->order, &mark);
    gm__hole_put(arena, chain, &mark, false);
  }
  if (lane->number < GM__LANE_IDLE) lane->settled = arena->order.slots[lane->number].passed;
}

void gm__holes_settle(gm__arena *arena) {
  for (int i = 0; i < GM__LANES; i++) {
    if (i != GM__LANE_IDLE && hole_is_due(arena, arena->lanes[i])) hole_settle_lane(arena, arena->lanes[i]);
  }
}

void gm__holes_gather(gm__arena *arena, int slot) {
  if (slot != GM__ORDER_HOST) hole_put_all(arena, hole_lift(arena, arena->lanes[slot]), true, GM__ORDER_HOST);
}

/* What is not a hole remembers the stream no more. */
static void hole_forget_others(gm__arena *arena, int slot) {
  for (uint32_t number = 1; number < gm__spans_count(&arena->spans); number++) {
    gm__span *span = gm__arena_span(arena, number);
    if (span->state == GM__SPAN_UNUSED || gm__span_is(span) == GM__SPAN_HOLE) continue;
    gm__rare *rare = gm__arena_rare(arena, number);
    if (rare) gm__order_forget_mark(&arena->order, &rare->mark, slot);
    if (span->lane == slot) span->lane = GM__LANE_IDLE;
    if (gm__span_is(span) == GM__SPAN_LIVE && span->bin == slot) span->bin = GM__LANE_MIXED;
  }
}

void gm__holes_forget(gm__arena *arena, int slot) {
  gm__holes_flush(arena);
  const uint32_t own = hole_lift(arena, arena->lanes[slot]);
  const uint32_t mixed = hole_lift(arena, arena->lanes[GM__LANE_MIXED]);
  hole_put_all(arena, own, false, slot);
  hole_put_all(arena, mixed, false, slot);
  hole_forget_others(arena, slot);
  gm__arena_forget_slot(arena, slot);
}

/* ---- searching ---- */

typedef struct hole_search {
  const gm__want *want;
  int slot;
  gm__order_verdict worst;
  uint32_t best;
  gm__order_verdict verdict;
} hole_search;

bool gm__hole_fits(const gm__arena *arena, const gm__want *want, uint32_t hole) {
  if (want->exact >> arena->shift > UINT32_MAX) return false; /* no span is that large */
  return gm__span_fits(gm__arena_span(arena, hole), hole_granules(arena, want), want->align, gm__arena_granule(arena));
}

/* Is there a hole in the lane that is better than what was found? */
static void hole_look(const gm__arena *arena, hole_search *search, int number) {
  const gm__lane *lane = arena->lanes[number];
  if (!lane || !lane->heap.top) return;
  const uint32_t found =
      gm__heap_search(&arena->spans, &lane->heap, hole_granules(arena, search->want),
                      gm__max(search->want->align, gm__arena_granule(arena)), gm__arena_granule(arena));
  if (!found) return;
  const gm__mark mark = gm__arena_mark(arena, found);
  const gm__order_verdict verdict = gm__order_judge(&arena->order, &mark, search->slot, search->want->insert);
  if (verdict > search->worst || (search->best && search->verdict < verdict)) return;
  const bool larger =
      search->best && gm__arena_span(arena, search->best)->granules <= gm__arena_span(arena, found)->granules;
  if (search->best && search->verdict == verdict && larger) return;
  search->best = found;
  search->verdict = verdict;
}

/* The streams that have holes. */
static uint64_t hole_streams(const gm__arena *arena) {
  uint64_t streams = 0;
  if (arena->lanes[GM__LANE_MIXED]->heap.top) return arena->order.used;
  for (int i = 0; i < GM__LANE_IDLE; i++) {
    if (arena->lanes[i] && arena->lanes[i]->heap.top) streams |= UINT64_C(1) << i;
  }
  return streams;
}

uint32_t gm__holes_find(gm__arena *arena, const gm__want *want, int slot, gm__order_verdict worst,
                        uint64_t *out_pending, gm__order_verdict *out_verdict) {
  hole_search search = {.want = want, .slot = slot, .worst = worst};
  if (slot != GM__ORDER_HOST) hole_look(arena, &search, slot);
  hole_look(arena, &search, GM__LANE_IDLE);
  if (!search.best && worst > GM__ORDER_READY) hole_look(arena, &search, GM__LANE_MIXED);
  const bool anywhere = !search.best && worst >= GM__ORDER_OTHERS_WAIT;
  for (int i = 0; anywhere && i < GM__LANE_IDLE; i++) {
    if (i != slot) hole_look(arena, &search, i);
  }
  *out_verdict = search.verdict;
  if (!search.best) *out_pending |= hole_streams(arena);
  return search.best;
}

/* ---- carving ---- */

/* The first granules of a hole as a span AWAY, with its order but for the point. */
static uint32_t hole_split(gm__arena *arena, uint32_t hole, uint32_t granules) {
  gm__mark mark = gm__arena_mark(arena, hole);
  mark.has_point = false;
  const uint32_t front = gm__hole_cut(arena, arena->lanes[gm__arena_span(arena, hole)->lane], hole, granules);
  if (front == hole) {
    gm__span *span = gm__arena_span(arena, hole);
    span->state = (uint8_t)((span->state & GM__SPAN_RARE) | GM__SPAN_AWAY);
  } else {
    gm__arena_set_mark(arena, front, &mark);
  }
  return front;
}

uint32_t gm__hole_carve(gm__arena *arena, const gm__want *want, uint32_t hole) {
  const uint64_t align = gm__max(want->align, gm__arena_granule(arena));
  const uint64_t pad = gm__span_pad(gm__arena_span(arena, hole), align);
  if (pad) { /* what comes before the first aligned byte is a hole of its own */
    const uint32_t front = hole_split(arena, hole, (uint32_t)(pad >> arena->shift));
    gm__span *span = gm__arena_span(arena, front);
    span->state = (uint8_t)((span->state & GM__SPAN_RARE) | GM__SPAN_HOLE);
    gm__heap_put(&arena->spans, hole_heap(arena, front), front);
  }
  return hole_split(arena, hole, hole_granules(arena, want));
}
