/* What nearly every free is: a span goes back to the lane of its stream, whether on the fast way or not. */
#ifndef GM_CORE_POOL_GIVE_H
#define GM_CORE_POOL_GIVE_H

#include "core/pool/hole.h"

/* The live span becomes free, of one size in a quick list or a hole; false, and nothing has happened: there is more to
 * it than that. Inside the arena's lock. */
static inline __attribute__((always_inline)) bool gm__give(gm__arena *arena, uint32_t number, const gm_stream *stream) {
  gm__span *span = gm__arena_span(arena, number);
  gm__lane *lane = gm__arena_lane(arena, stream);
  if (__builtin_expect(!lane || span->state != GM__SPAN_LIVE, 0)) return false;
  const uint8_t last = span->lane;
  const bool pending = last != lane->number && last != GM__LANE_IDLE && span->seq > arena->order.slots[last].passed;
  if (__builtin_expect(pending, 0)) return false;
  gm__arena_take_back(arena, span, number, stream);
  span->seq = gm__order_now(&arena->order);
  span->lane = lane->number;
  if (stream) arena->order.slots[lane->number].last_free = span->seq;
  const uint32_t most = atomic_load_explicit(&arena->pool->quick_blocks, memory_order_relaxed);
  if (!gm__quick_put(lane, span, number, arena->quick_most, most)) gm__hole_give(arena, number, lane);
  return true;
}

#endif
