/* Holes of an arena: how spans become holes and are joined, found again and cut. Inside the arena's lock. */
#ifndef GM_CORE_POOL_HOLE_H
#define GM_CORE_POOL_HOLE_H

#include "core/pool/arena.h"

/* May the neighbour be joined at once with a hole of that lane? */
static inline bool gm__hole_joins(const gm__arena *arena, const gm__span *neighbour, uint8_t lane) {
  if (neighbour->state != GM__SPAN_HOLE) return false; /* a rare one neither */
  return neighbour->lane == lane || (arena->mixes && neighbour->lane == GM__LANE_IDLE && lane != GM__LANE_MIXED);
}

/* A hole has another size, and is the lane's from now on. */
static inline void gm__hole_move(gm__arena *arena, uint32_t number, gm__lane *lane, uint32_t granules) {
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
static inline void gm__hole_free(gm__arena *arena, uint32_t number, gm__lane *lane) {
  gm__spans *spans = &arena->spans;
  gm__span *span = gm__span_at(spans, number);
  const uint32_t left = span->left, right = span->right;
  gm__span *before = gm__span_at(spans, left), *after = gm__span_at(spans, right);
  const uint64_t seq = span->seq;
  uint32_t granules = span->granules;
  if (gm__hole_joins(arena, before, lane->number)) {
    granules += before->granules;
    if (before->seq < seq) before->seq = seq;
    gm__span_unlink(spans, number);
    if (gm__hole_joins(arena, after, lane->number)) {
      granules += after->granules;
      if (before->seq < after->seq) before->seq = after->seq;
      gm__heap_take(spans, &arena->lanes[after->lane]->heap, right);
      gm__span_unlink(spans, right);
    }
    gm__hole_move(arena, left, lane, granules);
  } else if (gm__hole_joins(arena, after, lane->number)) {
    granules += after->granules;
    if (after->seq < seq) after->seq = seq;
    after->address = span->address;
    gm__span_unlink(spans, number);
    gm__hole_move(arena, right, lane, granules);
  } else {
    span->state = GM__SPAN_HOLE;
    gm__heap_put(spans, &lane->heap, number);
  }
}

/* The same for a span that was handed out: it leaves the look-up. Not inline, so that frees into quick lists need no
 * registers for it. */
void gm__hole_give(gm__arena *arena, uint32_t number, gm__lane *lane);

/* A hole of the lane, or the first granules of it, as a span that is no hole. A span was reserved. */
static inline uint32_t gm__hole_cut(gm__arena *arena, gm__lane *lane, uint32_t hole, uint32_t granules) {
  if (gm__arena_span(arena, hole)->granules == granules) {
    gm__heap_take(&arena->spans, &lane->heap, hole);
    return hole;
  }
  const uint32_t front = gm__spans_take(&arena->spans);
  gm__heap_cut(&arena->spans, &lane->heap, hole, granules, (uint64_t)granules << arena->shift, front);
  return front;
}

/* A span that is in no list becomes a hole with that mark, joined with all that touch and wait for the same streams.
 * `mixes`: idle neighbours may become the streams' that use it. */
void gm__hole_put(gm__arena *arena, uint32_t number, const gm__mark *mark, bool mixes);

/* Whether idle neighbours may always become a stream's: there is no other. */
static inline bool gm__hole_mixes(const gm__arena *arena, const gm__mark *mark) {
  return arena->mixes && mark->streams;
}

/* Empty the quick lists into holes. True if there was anything. */
bool gm__holes_flush(gm__arena *arena);

/* Move holes of streams that are done to where everybody finds them. Asks no driver, but for points of single holes. */
void gm__holes_settle(gm__arena *arena);

/* Join the holes of the stream with idle neighbours: these wait for it, too, from then on. */
void gm__holes_gather(gm__arena *arena, int slot);

/* The stream is done and goes. */
void gm__holes_forget(gm__arena *arena, int slot);

/* Fits in that hole, order aside. */
bool gm__hole_fits(const gm__arena *arena, const gm__want *want, uint32_t hole);

/* A hole for the request of which a verdict of at most `worst` is true; 0: none, and *out_pending has the streams that
 * stand in the way of others. */
uint32_t gm__holes_find(gm__arena *arena, const gm__want *want, int slot, gm__order_verdict worst,
                        uint64_t *out_pending, gm__order_verdict *out_verdict);

/* The request's bytes out of the hole, as a span that is AWAY. GM__HOLE_SPANS were reserved. */
uint32_t gm__hole_carve(gm__arena *arena, const gm__want *want, uint32_t hole);

enum { GM__HOLE_SPANS = 4 };

#endif
