#include "core/arena/settle.h"

#include "core/algo/tlsf_search.h"
#include "core/arena/free_chunks.h"
#include "core/arena/walk.h"

/* Invariants. A sweep visits the bins of a stream cache from the largest down. Its place is a chunk in a bin. Where
 * that has left its bin while others used the arena, the rest of the bin waits for the next sweep. Chunks that are
 * freed behind the place is freed later than the sweep began, and waits, too. */

static bool settle_is_due(const gm__arena *arena, const gm__stream_cache *cache) {
  if (!cache || gm__stream_cache_is_empty(cache)) return false;
  if (cache->number == GM__STREAM_CACHE_MIXED) return true;
  const gm__order_slot *slot = &arena->order.slots[cache->number];
  if (arena->order.given >> cache->number & 1) return true; /* one with the engine's point may be done sooner */
  return slot->passed >= slot->last_free || !cache->ordered || slot->passed > cache->settled;
}

/* ---- the place of a sweep ---- */

/* Is the chunk still where the sweep saw it? */
static bool settle_is_there(const gm__arena *arena, const gm__stream_cache *cache, uint32_t number) {
  const gm__chunk *chunk = gm__arena_chunk(arena, number);
  return gm__chunk_is(chunk) == GM__CHUNK_FREE && chunk->cache == cache->number && chunk->bin == cache->sweep.bin &&
         gm__area_of(chunk) == cache->sweep.area;
}

static void settle_next_bin(gm__sweep *sweep) {
  sweep->next = 0;
  if (sweep->bin) {
    sweep->bin--;
    return;
  }
  sweep->bin = GM__TLSF_BINS - 1;
  sweep->area++;
}

/* The chunk to look at now; 0: the sweep is over. */
static uint32_t settle_at(const gm__arena *arena, gm__stream_cache *cache) {
  gm__sweep *sweep = &cache->sweep;
  if (sweep->next && !settle_is_there(arena, cache, sweep->next)) {
    sweep->missed = true;
    settle_next_bin(sweep);
  }
  for (; !sweep->next && sweep->area < GM__AREAS; sweep->area++) {
    const gm__tlsf *tlsf = &cache->tlsf[sweep->area];
    const uint32_t bin = gm__tlsf_last(tlsf, sweep->bin);
    sweep->bin = bin < GM__TLSF_BINS ? (uint16_t)bin : GM__TLSF_BINS - 1;
    sweep->next = bin < GM__TLSF_BINS ? tlsf->heads[bin] : 0;
    if (sweep->next) break;
  }
  return sweep->next;
}

static void settle_begin(const gm__arena *arena, gm__stream_cache *cache) {
  const uint64_t passed = cache->number < GM__STREAM_CACHE_IDLE ? arena->order.slots[cache->number].passed : 0;
  cache->sweep = (gm__sweep){.open = true, .bin = GM__TLSF_BINS - 1, .passed = passed};
}

/* ---- one chunk ---- */

/* A chunk without a cold record that one stream used. */
static bool settle_is_plain(const gm__chunk *chunk) {
  return !(chunk->state & GM__CHUNK_COLD) && chunk->cache < GM__STREAM_CACHE_IDLE;
}

/* The chunk comes where its last use belongs now. */
static void settle_chunk(gm__arena *arena, gm__stream_cache *cache, uint32_t number) {
  gm__chunk *chunk = gm__arena_chunk(arena, number);
  const bool plain = settle_is_plain(chunk);
  if (plain && chunk->seq > arena->order.slots[cache->number].passed) return;
  gm__tlsf_take(&arena->chunks, gm__stream_cache_bins(cache, chunk), number);
  gm__chunk_become(chunk, GM__CHUNK_AWAY);
  if (plain) {
    chunk->cache = GM__STREAM_CACHE_IDLE;
    gm__free_chunk_free(arena, number, arena->caches[GM__STREAM_CACHE_IDLE]);
    return;
  }
  gm__last_use use = gm__arena_last_use(arena, number);
  gm__order_settle(&arena->order, &use);
  gm__free_chunk_put(arena, number, &use, false);
}

/* The sweep moves on behind the chunk. That may have joined the next one, so the bin begins anew then. */
static void settle_step(gm__arena *arena, gm__stream_cache *cache, uint32_t number) {
  gm__sweep *sweep = &cache->sweep;
  const uint32_t next = gm__arena_chunk(arena, number)->next;
  settle_chunk(arena, cache, number);
  if (!next) {
    settle_next_bin(sweep);
  } else {
    sweep->next = settle_is_there(arena, cache, next) ? next : cache->tlsf[sweep->area].heads[sweep->bin];
  }
}

/* ---- pieces ---- */

/* Goes on with the sweep for so many looks. True: the sweep is over. */
static bool settle_cache(gm__arena *arena, gm__stream_cache *cache, uint32_t *looks) {
  gm__sweep *sweep = &cache->sweep;
  if (!sweep->open) settle_begin(arena, cache);
  for (uint32_t number; (number = settle_at(arena, cache)); settle_step(arena, cache, number)) {
    if (!*looks) return false;
    --*looks;
  }
  sweep->open = false;
  if (!sweep->missed && cache->number < GM__STREAM_CACHE_IDLE) cache->settled = sweep->passed;
  return true;
}

bool gm__settle_piece(gm__arena *arena) {
  uint32_t looks = GM__SETTLE_PIECE;
  bool more = false;
  for (int i = 0; i < GM__STREAM_CACHES; i++) {
    if (i != GM__STREAM_CACHE_IDLE && settle_is_due(arena, arena->caches[i]))
      more |= !settle_cache(arena, arena->caches[i], &looks);
  }
  return more;
}

void gm__settle_all(gm__arena *arena) {
  uint32_t looks = GM__SETTLE_PIECE;
  for (int i = 0; i < GM__STREAM_CACHES; i++) {
    gm__stream_cache *cache = arena->caches[i];
    if (i == GM__STREAM_CACHE_IDLE || !settle_is_due(arena, cache)) continue;
    cache->sweep.open = false; /* an earlier sweep knew less */
    for (; !settle_cache(arena, cache, &looks); looks = GM__SETTLE_PIECE) gm__arena_breathe(arena);
  }
}

uint32_t gm__settle_find(gm__arena *arena, const gm__want *want, gm__area area, int slot, uint64_t *out_pending,
                         gm__order_verdict *out_verdict) {
  gm__order_refresh(&arena->order, *out_pending);
  for (;;) {
    const bool more = gm__settle_piece(arena);
    const uint32_t found = gm__free_chunks_find(arena, want, area, slot, GM__ORDER_READY, out_pending, out_verdict);
    if (found || !more) return found;
    gm__arena_breathe(arena);
  }
}
