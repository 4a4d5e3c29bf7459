/* What nearly every free is: a span goes back to the lane of its stream, whether on the fast way or not. */
#ifndef GM_CORE_POOL_GIVE_H
#define GM_CORE_POOL_GIVE_H

#include "core/pool/hole.h"

/* The span is freed now, by the lane's stream. */
static inline void gm__give_time(const gm__arena *arena, gm__span *span, const gm__lane *lane) {
  span->seq = *lane->last_free = gm__order_now(&arena->order);
}

/* Into a quick list; false: it is too large, or there is no room. */
static inline __attribute__((always_inline)) bool gm__give_quick(gm__arena *arena, uint32_t number, gm__span *span,
                                                                 gm__lane *lane, uint32_t granules) {
  return granules <= arena->quick_most && gm__quick_put(lane, span, number, granules, gm__pool_quick(arena->pool));
}

/* The live span becomes free, of the lane of the stream (NULL: it has none); false, and nothing has happened: there is
 * more to it than that. Inside the arena's lock. */
static inline bool gm__give_to(gm__arena *arena, uint32_t number, gm__lane *lane, const gm_stream *stream) {
  gm__span *span = gm__arena_span(arena, number);
  if (__builtin_expect(!lane || span->state != GM__SPAN_LIVE, 0)) return false;
  const uint8_t last = span->lane;
  const bool pending = last != lane->number && last != GM__LANE_IDLE && span->seq > arena->order.slots[last].passed;
  if (__builtin_expect(pending, 0)) return false;
  gm__arena_take_back(arena, span, number, stream);
  gm__give_time(arena, span, lane);
  if (!gm__give_quick(arena, number, span, lane, span->granules)) gm__hole_give(arena, number, lane);
  return true;
}

/* The same, of the lane that is known at once. */
static inline bool gm__give(gm__arena *arena, uint32_t number, const gm_stream *stream) {
  return gm__give_to(arena, number, gm__arena_lane(arena, stream), stream);
}

#endif
