#include "core/arena/arena_alloc.h"
#include "core/arena/quick_flush.h"

#include "core/arena/free_fast.h"
#include "core/arena/grow.h"
#include "core/arena/settle.h"
#include "core/base/error.h"
#include "core/base/saturate.h"

/* ---- finding a chunk ---- */

/* A chunk of exactly that size from the quick lists of the stream. */
static uint32_t arena_alloc_quick(gm__arena *arena, const gm__want *want, int slot) {
  gm__stream_cache *cache = arena->caches[slot == GM__ORDER_HOST ? GM__STREAM_CACHE_IDLE : slot];
  if (!cache->ordered || want->align > gm__arena_granule(arena) || want->target.memory) return 0;
  return gm__quick_take(cache, &arena->chunks, want->exact >> arena->shift);
}

enum { ARENA_FLUSHES = 2 };

/* Empties the area's quick lists for a request. True if that set memory free. Small blocks use their lists most, and
 * their pages are few: after some flushes in a row the area grows instead, where it can. */
static bool arena_alloc_flush(gm__arena *arena, gm__area area, bool must) {
  if (area == GM__AREA_SMALL && !must && arena->small_flushes == ARENA_FLUSHES) {
    arena->small_flushes = 0;
    return false;
  }
  if (area == GM__AREA_SMALL && arena->small_flushes < ARENA_FLUSHES) arena->small_flushes++;
  return gm__free_chunks_flush_area(arena, area);
}

static uint32_t arena_alloc_find_in(gm__arena *arena, const gm__want *want, gm__area area, int slot, bool others,
                                    gm__order_verdict *verdict) {
  uint64_t pending = 0;
  if (arena->frees && arena->frees >= arena->ask_after && !gm__stream_captured(want->stream)) {
    arena->frees = 0;
    gm__order_refresh(&arena->order, arena->order.used);
    gm__settle_piece(arena);
  }
  uint32_t free_chunk = gm__free_chunks_find(arena, want, area, slot, GM__ORDER_READY, &pending, verdict);
  if (!free_chunk && arena_alloc_flush(arena, area, others))
    free_chunk = gm__free_chunks_find(arena, want, area, slot, GM__ORDER_READY, &pending, verdict);
  if (free_chunk || !pending || gm__stream_captured(want->stream)) return free_chunk;
  free_chunk = gm__settle_find(arena, want, area, slot, &pending, verdict);
  if (free_chunk) return free_chunk;
  gm__free_chunks_gather(arena, slot);
  free_chunk = gm__free_chunks_find(arena, want, area, slot, GM__ORDER_OWN_WAIT, &pending, verdict);
  if (free_chunk || !others) return free_chunk;
  return gm__free_chunks_find(arena, want, area, slot, GM__ORDER_OTHERS_WAIT, &pending, verdict);
}

/* A small request takes memory of the large area only if the arena cannot grow, and rather than wait for others. */
static uint32_t arena_alloc_find(gm__arena *arena, const gm__want *want, int slot, bool others,
                                 gm__order_verdict *verdict) {
  if (want->target.memory) return gm__target_find(arena, want);
  const gm__area area = gm__arena_area(arena, want->exact >> arena->shift);
  const bool anywhere = area == GM__AREA_SMALL && (others || gm__stream_captured(want->stream));
  if (!anywhere) return arena_alloc_find_in(arena, want, area, slot, others, verdict);
  uint32_t free_chunk = arena_alloc_find_in(arena, want, area, slot, false, verdict);
  if (!free_chunk) free_chunk = arena_alloc_find_in(arena, want, GM__AREA_LARGE, slot, others, verdict);
  if (!free_chunk && others) free_chunk = arena_alloc_find_in(arena, want, area, slot, true, verdict);
  return free_chunk;
}

/* Brings the chunk, which is AWAY, into the request's order. False: that is not possible. Steps out of the lock. */
static bool arena_alloc_order(gm__arena *arena, const gm__want *want, int slot, uint32_t number,
                              gm__order_verdict verdict, gm_acquire *answer) {
  if (verdict == GM__ORDER_READY) return true;
  if (!want->insert && verdict != GM__ORDER_BARRIER && !gm__arena_make_cold(arena, number)) return false;
  gm__last_use use = gm__arena_last_use(arena, number);
  const bool done = !use.streams || /* that work has ended since the search */
                    gm__want_order(arena->set->provider, want, &arena->order, &use, slot, verdict, answer);
  gm__arena_set_last_use(arena, number, &use);
  return done;
}

static void arena_alloc_put(gm__arena *arena, uint32_t number, const gm__last_use *use) {
  gm__free_chunk_put(arena, number, use, gm__free_chunk_mixes(arena, use));
}

/* A chunk for the request, AWAY, and how it was found; 0: there is none. */
static uint32_t arena_alloc_search(gm__arena *arena, const gm__want *want, bool others, gm_acquire *answer,
                                   gm__grant *found) {
  const int slot = gm__arena_slot(arena, want->stream);
  gm__order_verdict verdict = GM__ORDER_READY;
  uint32_t number = arena_alloc_quick(arena, want, slot);
  *answer = GM_ACQUIRE_OK;
  *found = (gm__grant){.same_stream = slot != GM__ORDER_HOST};
  if (number) return number;
  const uint32_t free_chunk = arena_alloc_find(arena, want, slot, others, &verdict);
  if (!free_chunk) return 0;
  if (!gm__chunks_reserve(&arena->chunks, GM__CARVE_CHUNKS) || !gm__lookup_reserve(&arena->lookup, &arena->chunks))
    return 0;
  number = gm__free_chunk_carve(arena, want, free_chunk);
  gm__lookup_insert(&arena->lookup, &arena->chunks, number);
  found->from_all = true;
  found->same_stream = slot != GM__ORDER_HOST && gm__arena_chunk(arena, number)->cache == slot;
  if (arena_alloc_order(arena, want, slot, number, verdict, answer)) return number;
  const gm__last_use use = gm__arena_last_use(arena, number);
  gm__lookup_remove(&arena->lookup, &arena->chunks, number);
  arena_alloc_put(arena, number, &use);
  return 0;
}

/* ---- the chunk in hand ---- */

static void arena_alloc_describe(gm__grant *grant, gm__arena *arena, uint32_t number) {
  const gm__chunk *chunk = gm__arena_chunk(arena, number);
  const gm__segment *segment = gm__segment_of(arena, number);
  grant->arena = arena;
  grant->chunk = number;
  grant->memory = segment->allocation->memory;
  grant->offset = chunk->address - segment->allocation->address;
  grant->address = chunk->address;
  grant->bytes = gm__arena_bytes(arena, chunk);
  grant->zeroed = chunk->seq == 0 && gm__segment_is_zeroed(segment);
  grant->mapped = segment->mapped;
}

static void arena_alloc_record(const gm__grant *grant, const gm__want *want, bool fresh, gm_block *block) {
  gm__arena *arena = grant->arena;
  gm__arena_stats *stats = &arena->stats;
  gm__arena_stats_add(fresh ? &stats->misses : grant->same_stream ? &stats->stream_hits : &stats->global_hits, 1);
  if (grant->from_all) gm__arena_stats_add(&stats->free_chunk_hits, 1);
  gm__chunk *chunk = gm__arena_chunk(arena, grant->chunk);
  const uint64_t asked = gm__max(want->bytes, gm__sub_sat(gm__arena_bytes(arena, chunk), UINT32_MAX));
  gm__arena_hand_out(arena, chunk, asked, want->tag, gm__arena_request_cache(arena, want->stream));
  if (arena->observed) gm__observe_enter(arena, grant->chunk, want->stream, want->counted);
  *block = gm__arena_block(arena, grant->chunk);
}

/* True when nothing is left to do with pooled memory outside the lock. */
static bool arena_alloc_is_direct(const gm__arena_set *set, const gm__want *want, const gm__grant *grant) {
  return !set->guarded && !(want->flags & GM_ZERO) && (grant->mapped || !(want->flags & GM_MAPPED));
}

bool gm__arena_alloc_pooled(gm__arena *arena, const gm__want *want, bool others, gm__grant *grant, gm_acquire *answer,
                            gm_block *block) {
  gm__arena_lock(arena);
  const bool sleeps = gm__pages_are_asleep(&arena->set->provider->pages);
  const uint32_t number = sleeps ? 0 : arena_alloc_search(arena, want, others, answer, grant);
  if (number) {
    arena_alloc_describe(grant, arena, number);
    grant->done = arena_alloc_is_direct(arena->set, want, grant);
    if (grant->done) {
      arena_alloc_record(grant, want, false, block);
    } else {
      gm__chunk_become(gm__arena_chunk(arena, number), GM__CHUNK_AWAY);
    }
  }
  gm__arena_unlock(arena);
  return number != 0;
}

void gm__arena_alloc_hand_out(const gm__grant *grant, const gm__want *want, bool fresh, gm_block *block) {
  gm__arena *arena = grant->arena;
  gm__arena_lock(arena);
  if (want->flags & GM_MAPPED) gm__segment_of(arena, grant->chunk)->mapped = true;
  arena_alloc_record(grant, want, fresh, block);
  gm__arena_unlock(arena);
}

/* ---- new memory ---- */

gm_status gm__arena_alloc_fresh(gm__arena *arena, const gm__want *want, gm__grant *grant, gm_acquire *answer,
                                gm_error *err) {
  uint32_t number = 0;
  *answer = GM_ACQUIRE_FRESH;
  *grant = (gm__grant){.arena = arena};
  const gm_status status = gm__growth_take(arena, want, &number, err);
  if (status) return status;
  gm__arena_lock(arena);
  arena_alloc_describe(grant, arena, number);
  gm__arena_unlock(arena);
  return GM_OK;
}

bool gm__arena_is_full(gm__arena *arena) {
  gm__arena_lock(arena);
  const bool full = gm__chunks_are_full(&arena->chunks, GM__CARVE_CHUNKS);
  gm__arena_unlock(arena);
  return full;
}

/* ---- freeing ---- */

/* The slot for a free on the stream. OUT_OF_HOST_MEMORY: the free cannot be noted. */
static gm_status arena_alloc_free_slot(gm__arena *arena, gm_stream *stream, int *out) {
  *out = gm__arena_free_slot(arena, stream);
  return stream && *out == GM__ORDER_HOST ? GM_ERR_OUT_OF_HOST_MEMORY : GM_OK;
}

/* A chunk that is in no list leaves the address index and becomes free. */
static void arena_alloc_put_free(gm__arena *arena, uint32_t number, int slot) {
  gm__last_use use = gm__arena_last_use(arena, number);
  gm__order_note_free(&arena->order, &use, slot);
  arena->frees++;
  gm__lookup_remove(&arena->lookup, &arena->chunks, number);
  arena_alloc_put(arena, number, &use);
}

void gm__arena_alloc_undo(const gm__grant *grant, gm_stream *stream) {
  gm__arena *arena = grant->arena;
  int slot;
  gm__arena_lock(arena);
  const bool noted = arena_alloc_free_slot(arena, stream, &slot) == GM_OK;
  if (noted) arena_alloc_put_free(arena, grant->chunk, slot); /* else work may still run there: nobody gets it */
  gm__arena_unlock(arena);
}

static gm_status arena_alloc_check(const gm__arena *arena, uint32_t number) {
  const gm__cold *cold = number ? gm__arena_cold(arena, number) : NULL;
  if (!number || (cold && cold->part)) return GM_ERR_INVALID_ARGUMENT;
  return cold && cold->mappings ? GM_ERR_BUSY : GM_OK;
}

/* Takes the live chunk of a block from its owner. 0: *status says why not. */
static uint32_t arena_alloc_seize(gm__arena *arena, const gm_block *block, const gm_stream *stream, gm_status *status) {
  const uint32_t number = gm__arena_find(arena, block);
  *status = arena_alloc_check(arena, number);
  if (*status) return 0;
  gm__chunk *chunk = gm__arena_chunk(arena, number);
  gm__arena_take_back(arena, chunk, number, stream);
  gm__chunk_become(chunk, GM__CHUNK_AWAY);
  return number;
}

/* The short way of a free where the fast path is closed. */
static bool arena_alloc_free_short(gm__arena *arena, uint32_t number, int slot, gm_stream *stream) {
  gm__stream_cache *cache = arena->caches[slot == GM__ORDER_HOST ? GM__STREAM_CACHE_IDLE : gm__order_place(slot)];
  return cache->ordered && gm__free_fast_to(arena, number, cache, stream);
}

static gm_status arena_alloc_take_back(gm__arena *arena, const gm_block *block, gm_stream *stream) {
  uint32_t number = gm__arena_find(arena, block);
  if (number && gm__free_fast(arena, number, stream)) return GM_OK;
  int slot;
  gm_status status = arena_alloc_free_slot(arena, stream, &slot);
  if (status) return status;
  if (arena->closed && (number = gm__arena_find(arena, block)) && arena_alloc_free_short(arena, number, slot, stream)) {
    return GM_OK;
  }
  number = arena_alloc_seize(arena, block, stream, &status);
  if (number) arena_alloc_put_free(arena, number, slot);
  return status;
}

void gm__arena_alloc_quarantine(gm__arena_set *set, const gm_block *block) {
  gm__arena *arena = gm__arena_of_block(set, block);
  gm_status status;
  if (!arena) return;
  gm__arena_lock(arena);
  arena_alloc_seize(arena, block, NULL, &status);
  gm__arena_unlock(arena);
}

gm_status gm__arena_free(gm__arena_set *set, const gm_block *block, gm_stream *stream) {
  gm__arena *arena = gm__arena_of_block(set, block);
  if (!arena) return GM_ERR_INVALID_ARGUMENT;
  gm__arena_lock(arena);
  const gm_status status = arena_alloc_take_back(arena, block, stream);
  gm__arena_unlock(arena);
  return status;
}

gm_status gm__arena_free_at(gm__arena *arena, uint64_t address, uint64_t bytes, gm_stream *stream) {
  gm_status status = GM_ERR_INVALID_ARGUMENT;
  gm__arena_lock(arena);
  const uint32_t number = gm__lookup_find(&arena->lookup, &arena->chunks, address);
  const gm__chunk *chunk = gm__arena_chunk(arena, number);
  if (number && gm__chunk_is(chunk) == GM__CHUNK_LIVE && bytes <= gm__arena_bytes(arena, chunk)) {
    const gm_block block = gm__arena_block(arena, number);
    status = arena_alloc_take_back(arena, &block, stream);
  }
  gm__arena_unlock(arena);
  return status;
}
