#include "core/arena/quick_flush.h"

/* Flushes the lists of such sizes as the area has. */
static void quick_flush_cache(gm__arena *arena, gm__stream_cache *cache, gm__area area) {
  for (int i = 0; cache->quick_count && i < GM__QUICK_LISTS; i++) {
    gm__quick *quick = &cache->quick[i];
    if (gm__arena_area(arena, quick->granules) != area) continue;
    while (quick->head) gm__free_chunk_flush_one(arena, cache, quick);
  }
}

bool gm__free_chunks_flush_area(gm__arena *arena, gm__area area) {
  uint64_t flushed = 0;
  for (int i = 0; i < GM__STREAM_CACHES; i++) {
    gm__stream_cache *cache = arena->caches[i];
    if (!cache || !cache->quick_count) continue;
    flushed += cache->quick_count;
    quick_flush_cache(arena, cache, area);
    flushed -= cache->quick_count;
  }
  return flushed != 0;
}
