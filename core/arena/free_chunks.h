/* Free chunks of an arena: how a chunk becomes free, how free chunks are joined, found and cut. REQUIRES: arena lock,
 * for all of it. */
#ifndef GM_CORE_ARENA_FREE_CHUNKS_H
#define GM_CORE_ARENA_FREE_CHUNKS_H

#include "core/arena/arena.h"

/* True for a free chunk that no stream may still use. */
static inline bool gm__chunk_is_idle(const gm__chunk *chunk) {
  return chunk->part == gm__stream_cache_part(GM__STREAM_CACHE_IDLE, GM__CHUNK_FREE);
}

/* A chunk that is in no list and has no cold record becomes a free chunk of the stream cache. It is joined with free
 * chunks that it touches, which stay in their bins where they can. */
void gm__free_chunk_free(gm__arena *arena, uint32_t number, gm__stream_cache *cache);

/* A chunk that was handed out comes into the stream cache: into a quick list, which makes room for it, or as a free
 * chunk. It is not inline, so that frees into quick lists need no registers for it. */
void gm__free_chunk_keep(gm__arena *arena, uint32_t number, gm__stream_cache *cache);

/* Cuts the first granules off a free chunk in those bins, or takes all of it. The result is AWAY. One chunk was
 * reserved. */
static inline __attribute__((always_inline)) uint32_t gm__free_chunk_cut(gm__arena *arena, gm__tlsf *bins,
                                                                         uint32_t free_chunk, uint32_t granules) {
  if (gm__arena_chunk(arena, free_chunk)->granules == granules) {
    gm__tlsf_take(&arena->chunks, bins, free_chunk);
    return free_chunk;
  }
  const uint32_t front = gm__chunks_pop(&arena->chunks);
  gm__tlsf_cut(&arena->chunks, bins, free_chunk, granules, (uint64_t)granules << arena->shift, front);
  return front;
}

/* A chunk that is in no list becomes a free chunk with that last use. It is joined with neighbours that wait for the
 * same streams. `mixes`: it is joined with idle neighbours, too. It joins at most a piece of them, and returns how
 * many. So a long row may stay in several. */
uint32_t gm__free_chunk_put(gm__arena *arena, uint32_t number, const gm__last_use *use, bool mixes);

/* True when idle neighbours may always join a stream's free chunk: the arena knows no other stream. */
static inline bool gm__free_chunk_mixes(const gm__arena *arena, const gm__last_use *use) {
  return arena->mixes && use->streams;
}

/* Turns one chunk of a quick list, which is not empty, into a free chunk. */
void gm__free_chunk_flush_one(gm__arena *arena, gm__stream_cache *cache, gm__quick *quick);

/* ---- free_streams.c: what streams still use ---- */

/* Asks the engine's points with which free blocks wait. It looks at free chunks, if there is such a point, and leaves
 * the lock after each piece. */
void gm__free_chunks_settle_given(gm__arena *arena);

/* Joins the free chunks of the slot's stream with idle neighbours. Those wait for the stream, too, from then on. It
 * leaves the lock where there are many. */
void gm__free_chunks_gather(gm__arena *arena, int slot);

/* The stream of the slot is done, not pinned, and closes: no free chunk waits for it any more, and the slot is free. It
 * looks at the stream's free chunks. Where many chunks have cold records, or several streams, it looks at all. It
 * leaves the lock after each piece. False: a thread came to use the stream outside the lock. */
bool gm__free_chunks_forget(gm__arena *arena, int slot);

/* ---- free_chunks.c: search and cut ---- */

/* True when the request fits into the free chunk, whatever streams use that. */
bool gm__free_chunk_fits(const gm__arena *arena, const gm__want *want, uint32_t free_chunk);

/* Finds a free chunk of the area for the request with a verdict of at most `worst`. 0: none; *out_pending gets the
 * streams that still use other free chunks. */
uint32_t gm__free_chunks_find(gm__arena *arena, const gm__want *want, gm__area area, int slot, gm__order_verdict worst,
                              uint64_t *out_pending, gm__order_verdict *out_verdict);

/* Cuts the request's bytes out of the free chunk. The result is AWAY. GM__CARVE_CHUNKS chunks were reserved. */
uint32_t gm__free_chunk_carve(gm__arena *arena, const gm__want *want, uint32_t free_chunk);

enum { GM__CARVE_CHUNKS = 4 };

/* ---- target.c: at a certain place ---- */

/* The idle free chunk in which the request's target is; 0: the place is not free. It may ask the streams. */
uint32_t gm__target_find(gm__arena *arena, const gm__want *want);

/* The bytes of the free chunk that lie before what is cut out of it. */
static inline uint64_t gm__target_pad(const gm__want *want, const gm__chunk *free_chunk, uint64_t align) {
  return want->target.memory ? want->target.address - free_chunk->address : gm__chunk_pad(free_chunk, align);
}

#endif
