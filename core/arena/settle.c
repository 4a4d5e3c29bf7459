#include "core/arena/settle.h"

#include "core/algo/tlsf_search.h"
#include "core/arena/free_chunks.h"
#include "core/arena/walk.h"
#include "core/base/saturate.h"

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
static bool settle_is_there(const gm__arena *arena, const gm__stream_cache *cache, const gm__sweep *sweep,
                            uint32_t number) {
  const gm__chunk *chunk = gm__arena_chunk(arena, number);
  return gm__chunk_is(chunk) == GM__CHUNK_FREE && chunk->cache == cache->number && chunk->bin == sweep->bin &&
         gm__area_of(chunk) == sweep->area;
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
static uint32_t settle_at(const gm__arena *arena, const gm__stream_cache *cache, gm__sweep *sweep) {
  if (sweep->next && !settle_is_there(arena, cache, sweep, sweep->next)) {
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

static gm__sweep settle_begin(const gm__arena *arena, const gm__stream_cache *cache) {
  const uint64_t passed = cache->number < GM__STREAM_CACHE_IDLE ? arena->order.slots[cache->number].passed : 0;
  return (gm__sweep){.open = true, .bin = GM__TLSF_BINS - 1, .passed = passed};
}

/* ---- one chunk ---- */

/* A chunk without a cold record that one stream used. */
static bool settle_is_plain(const gm__chunk *chunk) {
  return !(chunk->state & GM__CHUNK_COLD) && chunk->cache < GM__STREAM_CACHE_IDLE;
}

/* These return how many neighbours were joined. settle_put: the chunk comes where its last use belongs now. `joins`: it
 * is joined with idle neighbours, too. */
static uint32_t settle_put(gm__arena *arena, gm__stream_cache *cache, uint32_t number, bool joins) {
  gm__chunk *chunk = gm__arena_chunk(arena, number);
  gm__tlsf_take(&arena->chunks, gm__stream_cache_bins(cache, chunk), number);
  gm__chunk_become(chunk, GM__CHUNK_AWAY);
  gm__last_use use = gm__arena_last_use(arena, number);
  if (!joins) gm__order_settle(&arena->order, &use);
  return gm__free_chunk_put(arena, number, &use, joins);
}

static uint32_t settle_chunk(gm__arena *arena, gm__stream_cache *cache, uint32_t number) {
  gm__chunk *chunk = gm__arena_chunk(arena, number);
  if (!settle_is_plain(chunk)) return settle_put(arena, cache, number, false);
  if (chunk->seq > arena->order.slots[cache->number].passed) return 0;
  gm__tlsf_take(&arena->chunks, gm__stream_cache_bins(cache, chunk), number);
  gm__chunk_become(chunk, GM__CHUNK_AWAY);
  chunk->cache = GM__STREAM_CACHE_IDLE;
  gm__free_chunk_free(arena, number, arena->caches[GM__STREAM_CACHE_IDLE]);
  return 0; /* two at most */
}

static bool settle_may_join(const gm__arena *arena, const gm__stream_cache *cache, uint32_t neighbour) {
  const gm__chunk *chunk = gm__arena_chunk(arena, neighbour);
  const bool own = gm__chunk_is(chunk) == GM__CHUNK_FREE && chunk->cache == cache->number;
  return own || gm__chunk_is_idle(chunk);
}

/* A chunk without such neighbours stays where it is. */
static uint32_t settle_join(gm__arena *arena, gm__stream_cache *cache, uint32_t number) {
  const gm__chunk *chunk = gm__arena_chunk(arena, number);
  const bool joins = settle_may_join(arena, cache, chunk->left) || settle_may_join(arena, cache, chunk->right);
  return joins ? settle_put(arena, cache, number, true) : 0;
}

/* The sweep moves on behind the chunk. That may have joined the next one, so the bin begins anew then. */
static uint32_t settle_step(gm__arena *arena, gm__stream_cache *cache, gm__sweep *sweep, uint32_t number, bool joins) {
  const uint32_t next = gm__arena_chunk(arena, number)->next;
  const uint32_t joined = joins ? settle_join(arena, cache, number) : settle_chunk(arena, cache, number);
  if (!next) {
    settle_next_bin(sweep);
  } else {
    sweep->next = settle_is_there(arena, cache, sweep, next) ? next : cache->tlsf[sweep->area].heads[sweep->bin];
  }
  return joined;
}

/* ---- pieces ---- */

/* Goes on with the sweep for so many looks; each chunk that is joined counts, too. True: the sweep is over. */
static bool settle_sweep(gm__arena *arena, gm__stream_cache *cache, gm__sweep *sweep, uint32_t *looks, bool joins) {
  for (uint32_t number; (number = settle_at(arena, cache, sweep));) {
    if (!*looks) return false;
    const uint32_t joined = settle_step(arena, cache, sweep, number, joins);
    *looks = (uint32_t)gm__sub_sat(*looks, 1 + (uint64_t)joined);
  }
  return true;
}

static bool settle_cache(gm__arena *arena, gm__stream_cache *cache, uint32_t *looks) {
  gm__sweep *sweep = &cache->sweep;
  if (!sweep->open) *sweep = settle_begin(arena, cache);
  if (!settle_sweep(arena, cache, sweep, looks, false)) return false;
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

void gm__settle_join(gm__arena *arena, int slot) {
  uint32_t looks = GM__SETTLE_PIECE;
  gm__sweep sweep = settle_begin(arena, arena->caches[slot]);
  for (; !settle_sweep(arena, arena->caches[slot], &sweep, &looks, true); looks = GM__SETTLE_PIECE) {
    gm__arena_breathe(arena);
  }
}
