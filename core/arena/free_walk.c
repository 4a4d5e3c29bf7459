#include "core/arena/free_walk.h"

#include "core/arena/walk.h"

enum { FREE_WALK_SHARE = 16 }; /* from one free chunk in so many on, a walk by number is the faster one */

static uint32_t free_walk_by_number(gm__arena *arena, gm__free_walk *walk) {
  do walk->at = gm__arena_walk(arena, walk->at);
  while (walk->at && gm__chunk_is(gm__arena_chunk(arena, walk->at)) != GM__CHUNK_FREE);
  return walk->at;
}

/* Is the chunk that was given last still where it was? */
static bool free_walk_is_there(const gm__arena *arena, const gm__free_walk *walk) {
  const gm__chunk *chunk = gm__arena_chunk(arena, walk->at);
  return gm__chunk_is(chunk) == GM__CHUNK_FREE && chunk->cache == walk->cache && chunk->bin == walk->bin &&
         gm__area_of(chunk) == walk->area && chunk->check == walk->check;
}

/* The first chunk of the next bin that is not empty; 0: there is none. */
static uint32_t free_walk_next_bin(const gm__arena *arena, gm__free_walk *walk) {
  for (; walk->cache < GM__STREAM_CACHES; walk->cache++) {
    const gm__stream_cache *cache = arena->caches[walk->cache];
    for (; cache && walk->area < GM__AREAS; walk->area++) {
      const gm__tlsf *tlsf = &cache->tlsf[walk->area];
      const uint32_t bin = walk->bin < GM__TLSF_BINS ? gm__tlsf_next(tlsf, walk->bin) : GM__TLSF_BINS;
      walk->bin = (uint16_t)bin;
      if (bin < GM__TLSF_BINS) return tlsf->heads[bin];
      walk->bin = 0;
    }
    walk->area = 0;
  }
  return 0;
}

static uint32_t free_walk_step(const gm__arena *arena, gm__free_walk *walk) {
  uint32_t next = walk->at ? gm__arena_chunk(arena, walk->at)->next : 0;
  if (walk->at && !next) walk->bin++;
  if (!next) next = free_walk_next_bin(arena, walk);
  walk->at = next;
  walk->check = gm__arena_chunk(arena, next)->check;
  return next;
}

uint32_t gm__free_walk_next(gm__arena *arena, gm__free_walk *walk) {
  if (walk->by_number) return free_walk_by_number(arena, walk);
  const uint32_t most = gm__chunks_count(&arena->chunks) / FREE_WALK_SHARE + GM__ARENA_PIECE;
  if (++walk->looks % GM__ARENA_PIECE == 0) gm__arena_breathe(arena);
  walk->lost = walk->looks > most || (walk->at && !free_walk_is_there(arena, walk));
  return walk->lost ? 0 : free_walk_step(arena, walk);
}

bool gm__free_walk_again(gm__free_walk *walk) {
  const bool lost = walk->lost;
  *walk = (gm__free_walk){.by_number = lost};
  return lost;
}
