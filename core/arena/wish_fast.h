/* The short way of a request that asks for certain memory. gm_alloc's fast path takes it. */
#ifndef GM_CORE_ARENA_WISH_FAST_H
#define GM_CORE_ARENA_WISH_FAST_H

#include "core/arena/arena.h"

/* The arena of a request that is not plain. NULL: its wish is new, or it needs the long way. REQUIRES: lock of the
 * calling thread's own arena. */
static inline gm__arena *gm__wish_arena(const gm__arena *own, const gm_request *request) {
  const gm__wish wish = gm__wish_of(request);
  gm__arena *arena = gm__wishes_find(&own->wishes, &wish);
  const bool later = request->deadline_ns | request->reserved[0];
  return gm__wish_is_aligned(request, gm__arena_granule(own)) && !later ? arena : NULL;
}

/* Steps out of the lock of an arena into that of another one, or of the same. REQUIRES, RELEASES: lock of `from`. */
static inline void gm__arena_step(gm__arena *from, gm__arena *to) {
  if (from == to) return;
  gm__arena_unlock(from);
  gm__arena_lock(to);
}

/* True when what the stream cache has needs no more work for the request. GM_MAPPED: a quick list has a chunk, and its
 * memory is mapped. REQUIRES: arena lock. */
static inline bool gm__wish_is_ready(const gm__arena *arena, gm__stream_cache *cache, uint64_t granules,
                                     const gm_request *request) {
  if (!(request->flags & GM_MAPPED)) return true;
  const gm__quick *quick = gm__quick_of(cache, (uint32_t)granules);
  if (!gm__quick_has(quick, granules)) return false;
  return arena->segment_table[gm__arena_chunk(arena, quick->head)->segment_index]->mapped;
}

#endif
