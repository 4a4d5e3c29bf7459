/* What nearly every free is: a span goes back to the lane of its stream, whether on the fast way or not. */
#ifndef GM_CORE_POOL_GIVE_H
#define GM_CORE_POOL_GIVE_H

#include "core/pool/hole.h"

/* The live span becomes free; false, and nothing has happened: there is more to it than that. Inside the arena's lock.
 */
static inline __attribute__((always_inline)) bool gm__give(gm__arena *arena, uint32_t number, const gm_stream *stream) {
  gm__span *span = gm__arena_span(arena, number);
  gm__lane *lane = gm__arena_lane(arena, stream);
  if (__builtin_expect(!lane || span->state != GM__SPAN_LIVE, 0)) return false;
  const uint8_t last = span->lane;
  const bool pending = last != lane->number && last != GM__LANE_IDLE && span->seq > arena->order.slots[last].passed;
  if (__builtin_expect(pending, 0)) return false;
  gm__arena_take_back(arena, span, number, stream);
  span->seq = *lane->last_free = gm__order_now(&arena->order);
  const bool quick =
      span->granules <= arena->quick_most && gm__quick_put(lane, span, number, gm__pool_quick(arena->pool));
  if (!quick) gm__hole_give(arena, number, lane);
  return true;
}

/* The same if a quick list takes the span (of `most` in the lane), which costs least, but who watches is to be told
 * afterwards; else nothing has happened. */
static inline __attribute__((always_inline)) bool gm__give_quick(gm__arena *arena, uint32_t number,
                                                                 const gm_stream *stream, uint32_t most) {
  gm__span *span = gm__arena_span(arena, number);
  const gm__arena_stream *known = &arena->streams[gm__arena_stream_place(stream)];
  gm__lane *lane = known->lane;
  const bool plain = known->stream == stream && span->state == GM__SPAN_LIVE;
  if (__builtin_expect(!plain, 0)) return false;
  const bool free_at_once = span->lane == lane->number || span->lane == GM__LANE_IDLE;
  if (!free_at_once || span->granules > arena->quick_most) return false;
  if (!gm__quick_put(lane, span, number, most)) return false;
  gm__arena_count_back(arena, span);
  span->seq = *lane->last_free = gm__order_now(&arena->order);
  return true;
}

#endif
