/* Holes of an arena: how spans become holes and are joined, found again and cut. Inside the arena's lock. */
#ifndef GM_CORE_POOL_HOLE_H
#define GM_CORE_POOL_HOLE_H

#include "core/pool/arena.h"

/* A span that is in no list, of the lane and with nothing rare to it, becomes a hole, or part of the holes it touches.
 * These stay where they are as far as they can. */
void gm__hole_free(gm__arena *arena, uint32_t number, gm__lane *lane);

/* A span that was handed out is the lane's: in a quick list that made room for it, or as a hole. Not inline, so that
 * other frees into quick lists need no registers for it. */
void gm__hole_give(gm__arena *arena, uint32_t number, gm__lane *lane);

/* A hole of the lane, or the first granules of it, as a span that is no hole. A span was reserved. */
static inline __attribute__((always_inline)) uint32_t gm__hole_cut(gm__arena *arena, gm__lane *lane, uint32_t hole,
                                                                   uint32_t granules) {
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
