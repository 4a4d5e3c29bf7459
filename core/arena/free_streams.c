#include "core/arena/free_chunks.h"
#include "core/arena/settle.h"
#include "core/order/order_told.h"

/* Free chunks and their streams: which of them are done, and what becomes of a stream's free chunks when it closes. */

/* Puts free chunks, which are in no list and linked by `next`, where their last uses belong now. `slot`: a stream that
 * they forget first. */
static void free_stream_put_all(gm__arena *arena, uint32_t chain, bool mixes, int slot) {
  for (uint32_t next; chain; chain = next) {
    next = gm__arena_chunk(arena, chain)->next;
    gm__last_use use = gm__arena_last_use(arena, chain);
    if (slot != GM__ORDER_HOST) gm__order_forget_use(&arena->order, &use, slot);
    gm__free_chunk_put(arena, chain, &use, mixes && use.streams);
  }
}

/* Takes all free chunks of the stream cache out of their bins. They are AWAY, so that none is joined on the way. */
static uint32_t free_stream_lift(gm__arena *arena, gm__stream_cache *cache, gm__area area) {
  const uint32_t chain = gm__tlsf_drain(&arena->chunks, &cache->tlsf[area]);
  for (uint32_t at = chain; at; at = gm__arena_chunk(arena, at)->next) {
    gm__chunk_become(gm__arena_chunk(arena, at), GM__CHUNK_AWAY);
  }
  return chain;
}

/* The streams that a chunk with memory names, whatever its state. */
static uint64_t free_stream_named(const gm__arena *arena) {
  uint64_t named = 0;
  for (uint32_t number = 1; number < gm__chunks_count(&arena->chunks); number++) {
    if (gm__chunk_is(gm__arena_chunk(arena, number)) < GM__CHUNK_FREE) continue;
    const gm__last_use use = gm__arena_last_use(arena, number);
    named |= use.streams | use.users;
  }
  return named;
}

void gm__free_chunks_settle_given(gm__arena *arena) {
  if (!arena->order.given) return;
  gm__free_chunks_flush(arena);
  gm__settle_all(arena);
  gm__order_note_named(&arena->order, free_stream_named(arena));
}

void gm__free_chunks_gather(gm__arena *arena, int slot) {
  for (int area = 0; slot != GM__ORDER_HOST && area < GM__AREAS; area++) {
    free_stream_put_all(arena, free_stream_lift(arena, arena->caches[slot], (gm__area)area), true, GM__ORDER_HOST);
  }
}

/* Chunks that are not free forget the stream. */
static void free_stream_forget_others(gm__arena *arena, int slot) {
  for (uint32_t number = 1; number < gm__chunks_count(&arena->chunks); number++) {
    gm__chunk *chunk = gm__arena_chunk(arena, number);
    if (chunk->state == GM__CHUNK_UNUSED || gm__chunk_is(chunk) == GM__CHUNK_FREE) continue;
    gm__cold *cold = gm__arena_cold(arena, number);
    if (cold) gm__order_forget_use(&arena->order, &cold->use, slot);
    if (chunk->cache == slot) chunk->cache = GM__STREAM_CACHE_IDLE;
    if (gm__chunk_is(chunk) == GM__CHUNK_LIVE && chunk->bin == slot) chunk->bin = GM__STREAM_CACHE_MIXED;
  }
}

void gm__free_chunks_forget(gm__arena *arena, int slot) {
  gm__free_chunks_flush(arena);
  for (int area = 0; area < GM__AREAS; area++) {
    const uint32_t own = free_stream_lift(arena, arena->caches[slot], (gm__area)area);
    const uint32_t mixed = free_stream_lift(arena, arena->caches[GM__STREAM_CACHE_MIXED], (gm__area)area);
    free_stream_put_all(arena, own, false, slot);
    free_stream_put_all(arena, mixed, false, slot);
  }
  free_stream_forget_others(arena, slot);
  gm__arena_forget_slot(arena, slot);
}
