#include "core/algo/tlsf_search.h"
#include "core/arena/free_chunks.h"
#include "core/arena/quick_flush.h"
#include "core/arena/settle.h"
#include "core/arena/walk.h"
#include "core/base/saturate.h"

/* Free chunks and their streams: which of them are done, and what becomes of a stream's free chunks when it closes. */

enum { FREE_STREAM_RECORDS = GM__ARENA_PIECE }; /* places in the table of cold records that one piece looks at */

/* Puts free chunks, which are in no list and linked by `next`, where their last uses belong now. */
static void free_stream_put_all(gm__arena *arena, uint32_t chain) {
  for (uint32_t next; chain; chain = next) {
    next = gm__arena_chunk(arena, chain)->next;
    const gm__last_use use = gm__arena_last_use(arena, chain);
    gm__free_chunk_put(arena, chain, &use, use.streams != 0);
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

void gm__free_chunks_settle_given(gm__arena *arena) {
  if (arena->order.given) gm__settle_all(arena);
}

/* True when the stream cache has at most a piece of free chunks. */
static bool free_stream_has_few(const gm__arena *arena, int number) {
  uint32_t looks = 0;
  for (int area = 0; area < GM__AREAS; area++) {
    const gm__tlsf *tlsf = &arena->caches[number]->tlsf[area];
    for (uint32_t bin = gm__tlsf_next(tlsf, 0); bin < GM__TLSF_BINS; bin = gm__tlsf_next_after(tlsf, bin)) {
      for (uint32_t at = tlsf->heads[bin]; at; at = gm__arena_chunk(arena, at)->next) {
        if (++looks > GM__SETTLE_PIECE) return false;
      }
    }
  }
  return true;
}

void gm__free_chunks_gather(gm__arena *arena, int slot) {
  if (slot == GM__ORDER_HOST) return;
  if (!free_stream_has_few(arena, slot)) {
    gm__settle_join(arena, slot);
    return;
  }
  for (int area = 0; area < GM__AREAS; area++) {
    free_stream_put_all(arena, free_stream_lift(arena, arena->caches[slot], (gm__area)area));
  }
}

/* ---- a stream closes ---- */

static bool free_stream_is_named(const gm__last_use *use, int slot) {
  return (use->streams | use->users) & gm__order_bit(slot) || (use->has_point && use->point_slot == slot);
}

static void free_stream_forget_live(gm__arena *arena, uint32_t number, int slot) {
  gm__chunk *chunk = gm__arena_chunk(arena, number);
  gm__cold *cold = gm__arena_cold(arena, number);
  if (cold) gm__order_forget_use(&arena->order, &cold->use, slot);
  if (chunk->cache == slot) chunk->cache = GM__STREAM_CACHE_IDLE;
  if (gm__stream_cache_of(chunk->bin) == (uint32_t)slot) chunk->bin = GM__STREAM_CACHE_MIXED;
}

/* A free chunk moves to where it belongs without the stream. */
static void free_stream_forget_free(gm__arena *arena, uint32_t number, gm__last_use use, int slot) {
  gm__chunk *chunk = gm__arena_chunk(arena, number);
  gm__order_forget_use(&arena->order, &use, slot);
  gm__tlsf_take(&arena->chunks, gm__stream_cache_bins(arena->caches[chunk->cache], chunk), number);
  gm__chunk_become(chunk, GM__CHUNK_AWAY);
  gm__free_chunk_put(arena, number, &use, false);
}

/* False: another thread has taken the chunk, and may be outside the lock with the stream. */
static bool free_stream_forget_one(gm__arena *arena, uint32_t number, int slot) {
  gm__chunk *chunk = gm__arena_chunk(arena, number);
  const uint8_t state = gm__chunk_is(chunk);
  if (state == GM__CHUNK_LIVE) free_stream_forget_live(arena, number, slot);
  if (state != GM__CHUNK_FREE && state != GM__CHUNK_AWAY) return true;
  gm__last_use use = gm__arena_last_use(arena, number);
  if (!free_stream_is_named(&use, slot)) return true;
  if (state == GM__CHUNK_AWAY && gm__order_is_pinned(&arena->order, slot)) return false;
  if (state == GM__CHUNK_FREE) {
    free_stream_forget_free(arena, number, use, slot);
    return true;
  }
  gm__order_forget_use(&arena->order, &use, slot);
  gm__arena_set_last_use(arena, number, &use);
  return true;
}

/* Turns the chunks of the stream's quick lists into free chunks. It leaves the lock after each piece. */
static void free_stream_flush(gm__arena *arena, gm__stream_cache *cache) {
  uint32_t looks = 0;
  for (int i = 0; i < GM__QUICK_LISTS; i++) {
    while (cache->quick[i].head) {
      gm__free_chunk_flush_one(arena, cache, &cache->quick[i]);
      if (++looks % GM__ARENA_PIECE == 0) gm__arena_breathe(arena);
    }
  }
}

/* Looks at the chunks of the numbers [from, to). */
static bool free_stream_forget_piece(gm__arena *arena, uint32_t from, uint32_t to, int slot) {
  bool all = true;
  for (uint32_t number = from; number < to; number++) {
    if (gm__chunk_is(gm__arena_chunk(arena, number)) >= GM__CHUNK_FREE) {
      all &= free_stream_forget_one(arena, number, slot);
    }
  }
  return all;
}

/* Looks at all chunks. */
static bool free_stream_forget_all(gm__arena *arena, int slot) {
  bool all = true;
  for (uint32_t from = 1, to; from < gm__chunks_count(&arena->chunks); from = to) {
    to = (uint32_t)gm__min(from + GM__ARENA_PIECE, gm__chunks_count(&arena->chunks));
    all &= free_stream_forget_piece(arena, from, to, slot);
    gm__arena_breathe(arena);
  }
  return all;
}

/* Empties the bins of the stream, which get no more chunks. */
static void free_stream_forget_own(gm__arena *arena, int slot) {
  const gm__stream_cache *cache = arena->caches[slot];
  uint32_t looks = 0;
  for (int area = 0; area < GM__AREAS; area++) {
    while (cache->tlsf[area].top) {
      const uint32_t number = cache->tlsf[area].heads[gm__tlsf_next(&cache->tlsf[area], 0)];
      free_stream_forget_free(arena, number, gm__arena_last_use(arena, number), slot);
      if (++looks % GM__ARENA_PIECE == 0) gm__arena_breathe(arena);
    }
  }
}

/* The free chunks that several streams may use are few. */
static void free_stream_forget_mixed(gm__arena *arena, int slot) {
  for (int area = 0; area < GM__AREAS; area++) {
    uint32_t at = free_stream_lift(arena, arena->caches[GM__STREAM_CACHE_MIXED], (gm__area)area);
    for (uint32_t next; at; at = next) {
      next = gm__arena_chunk(arena, at)->next;
      gm__last_use use = gm__arena_last_use(arena, at);
      gm__order_forget_use(&arena->order, &use, slot);
      gm__free_chunk_put(arena, at, &use, false);
    }
  }
}

/* Chunks that are in no list keep their cold records. False: as free_stream_forget_one. */
static bool free_stream_forget_cold(gm__arena *arena, uint32_t number, int slot) {
  gm__cold *cold = gm__arena_cold(arena, number);
  const uint8_t state = gm__chunk_is(gm__arena_chunk(arena, number));
  if (state == GM__CHUNK_LIVE) free_stream_forget_live(arena, number, slot);
  if (state != GM__CHUNK_AWAY || !cold || !free_stream_is_named(&cold->use, slot)) return true;
  if (gm__order_is_pinned(&arena->order, slot)) return false;
  gm__order_forget_use(&arena->order, &cold->use, slot);
  return true;
}

static bool free_stream_forget_records(gm__arena *arena, int slot) {
  bool all = true;
  uint64_t number, record;
  for (size_t cursor = 0; gm__map_next(&arena->cold, &cursor, &number, &record);) {
    all &= free_stream_forget_cold(arena, (uint32_t)number, slot);
  }
  return all;
}

/* True when a look at the chunks that several streams may use, and at the cold records, is a short one. */
static bool free_stream_shares_few(const gm__arena *arena, int slot) {
  const bool few = arena->cold.capacity + arena->cold.old_capacity <= FREE_STREAM_RECORDS;
  return few && gm__arena_may_follow(arena, slot) && free_stream_has_few(arena, GM__STREAM_CACHE_MIXED);
}

/* The order has ended the stream, and nobody uses it. So no chunk behind the walk comes to name it while the walk is
 * out of the lock. A live chunk without a cold record may still name the stream. That is no harm: it has passed. */
bool gm__free_chunks_forget(gm__arena *arena, int slot) {
  bool all = true;
  gm__order_end(&arena->order, slot);
  free_stream_flush(arena, arena->caches[slot]);
  free_stream_forget_own(arena, slot);
  if (free_stream_shares_few(arena, slot)) {
    free_stream_forget_mixed(arena, slot);
    all = free_stream_forget_records(arena, slot);
  } else {
    gm__arena_breathe(arena);
    all = free_stream_forget_all(arena, slot);
  }
  if (!all || gm__order_is_pinned(&arena->order, slot)) return false;
  gm__arena_forget_slot(arena, slot);
  return true;
}
