/* The short way of a free: the chunk goes into the stream cache of its stream. gm_free's fast path and gm__arena_free
 * share it. REQUIRES: arena lock, for all of it. */
#ifndef GM_CORE_ARENA_FREE_FAST_H
#define GM_CORE_ARENA_FREE_FAST_H

#include "core/arena/free_chunks.h"
#include "core/arena/observe.h"

/* The stream of the stream cache frees the chunk now. */
static inline void gm__free_stamp(const gm__arena *arena, gm__chunk *chunk, const gm__stream_cache *cache) {
  chunk->seq = *cache->last_free = gm__order_now(&arena->order);
}

/* Puts the chunk into a quick list. False: the chunk is too large, or there is no room. */
static inline __attribute__((always_inline)) bool gm__free_quick(gm__arena *arena, uint32_t number, gm__chunk *chunk,
                                                                 gm__stream_cache *cache, uint32_t granules) {
  return granules <= arena->quick_most &&
         gm__quick_put(cache, chunk, number, granules, gm__quick_blocks(&arena->set->quick));
}

/* Frees the live chunk into the stream cache of the stream (NULL: it has none). False: nothing has happened, because
 * the chunk needs the long way. */
static inline bool gm__free_fast_to(gm__arena *arena, uint32_t number, gm__stream_cache *cache,
                                    const gm_stream *stream) {
  gm__chunk *chunk = gm__arena_chunk(arena, number);
  if (__builtin_expect(!cache || chunk->state != GM__CHUNK_LIVE, 0)) return false;
  const uint8_t last = chunk->cache;
  const bool pending =
      last != cache->number && last != GM__STREAM_CACHE_IDLE && chunk->seq > arena->order.slots[last].passed;
  if (__builtin_expect(pending, 0)) return false;
  gm__arena_take_back(arena, chunk, number, stream);
  gm__free_stamp(arena, chunk, cache);
  if (!gm__free_quick(arena, number, chunk, cache, chunk->granules)) gm__free_chunk_keep(arena, number, cache);
  return true;
}

/* Like gm__free_fast_to, with the stream cache that one look finds. */
static inline bool gm__free_fast(gm__arena *arena, uint32_t number, const gm_stream *stream) {
  return gm__free_fast_to(arena, number, gm__arena_cache(arena, stream), stream);
}

#endif
