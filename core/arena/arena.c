#include "core/arena/arena.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"

/* Invariant: a thread touches a chunk of an arena only inside the arena's lock. */

static const gm_services *arena_services(const gm__arena *arena) { return arena->chunks.services; }

/* ---- stream caches and slots ---- */

/* The stream cache is for another stream from now on. */
static void arena_cache_follow(gm__stream_cache *cache, uint16_t asked) {
  cache->asked = asked;
  cache->live_role = gm__stream_cache_role(asked, cache->number, GM__CHUNK_LIVE);
  cache->idle_role = gm__stream_cache_role(asked, GM__STREAM_CACHE_IDLE, GM__CHUNK_LIVE);
}

bool gm__arena_make_cache(gm__arena *arena, int number) {
  if (arena->caches[number]) return true;
  gm__stream_cache *cache = gm__alloc(arena_services(arena), sizeof *cache);
  if (!cache) return false;
  cache->number = (uint8_t)number;
  arena_cache_follow(cache, cache->number);
  cache->quick_role = gm__stream_cache_role(cache->number, cache->number, GM__CHUNK_QUICK);
  cache->live_part = gm__stream_cache_part(cache->number, GM__CHUNK_LIVE);
  cache->free_part = number == GM__STREAM_CACHE_MIXED ? 0 : gm__stream_cache_part(cache->number, GM__CHUNK_FREE);
  cache->hits = number < GM__STREAM_CACHE_IDLE ? &arena->stats.stream_hits : &arena->stats.global_hits;
  cache->last_free = number < GM__STREAM_CACHE_IDLE ? &arena->order.slots[number].last_free : &arena->order.host_freed;
  arena->caches[number] = cache;
  if (number != GM__STREAM_CACHE_MIXED) gm__quick_bound_add_cache(&arena->set->quick);
  return true;
}

void gm__arena_count_streams(gm__arena *arena) {
  const uint64_t used = arena->order.used;
  arena->mixes = !(used & (used - 1));
  /* With 0 the fast path takes nothing but what quick lists have: it would cut a whole segment. */
  arena->ask_after = arena->set->whole ? 0 : arena->mixes ? UINT32_MAX : GM__ARENA_ASK_AFTER;
}

static void arena_remember(gm__arena *arena, const gm_stream *stream, int slot) {
  gm__stream_cache *cache = arena->caches[slot];
  cache->ordered = stream->kind == GM_STREAM_FIFO;
  if (!cache->ordered || arena->closed) return;
  const size_t at = gm__arena_stream_place(stream);
  arena->streams[at].stream = stream;
  arena->streams[at].cache = cache;
}

int gm__arena_slot(gm__arena *arena, gm_stream *stream) {
  int slot = gm__order_slot_of(&arena->order, stream);
  if (slot == GM__ORDER_HOST) return slot;
  if (!gm__arena_make_cache(arena, slot)) {
    gm__order_forget(&arena->order, slot);
    return GM__ORDER_HOST;
  }
  gm__arena_count_streams(arena);
  arena_remember(arena, stream, slot);
  return slot;
}

int gm__arena_free_slot(gm__arena *arena, gm_stream *stream) {
  const bool crowded = gm__order_member(&arena->order, stream) != GM__ORDER_HOST;
  const int slot = crowded ? GM__ORDER_HOST : gm__arena_slot(arena, stream);
  if (slot != GM__ORDER_HOST || !stream || (!crowded && !gm__order_is_full(&arena->order))) return slot;
  return gm__arena_make_cache(arena, GM__ORDER_CROWD) ? gm__order_free_slot(&arena->order, stream) : GM__ORDER_HOST;
}

/* The next value is the first one again, which old blocks may still have. */
bool gm__arena_may_follow(const gm__arena *arena, int slot) {
  return arena->caches[slot]->asked + (1u << GM__STREAM_CACHE_BITS) <= UINT16_MAX;
}

void gm__arena_forget_slot(gm__arena *arena, int slot) {
  const size_t at = gm__arena_stream_place(arena->order.slots[slot].stream);
  if (arena->streams[at].stream == arena->order.slots[slot].stream) {
    arena->streams[at] =
        (gm__arena_stream){.stream = NULL, .cache = arena->closed ? NULL : arena->caches[GM__STREAM_CACHE_IDLE]};
  }
  gm__order_forget(&arena->order, slot);
  arena_cache_follow(arena->caches[slot], (uint16_t)(arena->caches[slot]->asked + (1u << GM__STREAM_CACHE_BITS)));
  gm__arena_count_streams(arena);
}

uint16_t gm__arena_request_cache(const gm__arena *arena, const gm_stream *stream) {
  const int slot = gm__order_find(&arena->order, stream);
  if (!stream) return GM__STREAM_CACHE_IDLE;
  return slot == GM__ORDER_HOST ? GM__STREAM_CACHE_MIXED : arena->caches[slot]->asked;
}

uint64_t gm__arena_asked_on(const gm__arena *arena, const gm__chunk *chunk) {
  const uint32_t number = gm__stream_cache_of(chunk->bin);
  const bool open = number < GM__STREAM_CACHE_IDLE && arena->caches[number]->asked == chunk->bin;
  return open ? gm__order_stream_id(&arena->order, (int)number) : 0;
}

void gm__arena_close_fast(gm__arena *arena) {
  arena->closed = true;
  memset(arena->streams, 0, sizeof arena->streams);
}

void gm__arena_open_fast(gm__arena *arena) {
  arena->closed = arena->quotas || arena->set->closed;
  if (!arena->closed) arena->streams[gm__arena_stream_place(NULL)].cache = arena->caches[GM__STREAM_CACHE_IDLE];
}

/* ---- last uses ---- */

gm__cold *gm__arena_cold(const gm__arena *arena, uint32_t number) {
  uint64_t found = 0;
  if (!(gm__arena_chunk(arena, number)->state & GM__CHUNK_COLD)) return NULL;
  gm__map_find(&arena->cold, number, &found);
  return (gm__cold *)(uintptr_t)found;
}

/* The bit of the one stream that may still use the chunk. A free chunk has it for as long as it is in that stream's
 * bins. */
static uint64_t arena_one_stream(const gm__arena *arena, const gm__chunk *chunk) {
  if (chunk->cache >= GM__STREAM_CACHE_IDLE) return 0;
  const bool listed = gm__chunk_is(chunk) == GM__CHUNK_FREE || gm__chunk_is(chunk) == GM__CHUNK_QUICK;
  const bool over = !listed && chunk->seq <= arena->order.slots[chunk->cache].passed;
  return over ? 0 : gm__order_bit(chunk->cache);
}

gm__last_use gm__arena_last_use(const gm__arena *arena, uint32_t number) {
  const gm__cold *cold = gm__arena_cold(arena, number);
  if (cold) return cold->use;
  const gm__chunk *chunk = gm__arena_chunk(arena, number);
  const uint64_t one = arena_one_stream(arena, chunk);
  return (gm__last_use){.streams = chunk->cache == GM__STREAM_CACHE_MIXED ? chunk->streams : one,
                        .freed_at = chunk->seq};
}

gm__cold *gm__arena_make_cold(gm__arena *arena, uint32_t number) {
  gm__cold *cold = gm__arena_cold(arena, number);
  if (cold) return cold;
  cold = gm__alloc(arena_services(arena), sizeof *cold);
  if (!cold) return NULL;
  cold->use = gm__arena_last_use(arena, number);
  if (gm__map_insert(&arena->cold, number, (uintptr_t)cold)) {
    gm__release(arena_services(arena), cold, sizeof *cold);
    return NULL;
  }
  gm__arena_chunk(arena, number)->state |= GM__CHUNK_COLD;
  return cold;
}

bool gm__arena_is_out(const gm__arena *arena, uint32_t number) {
  if (gm__chunk_is(gm__arena_chunk(arena, number)) != GM__CHUNK_LIVE) return false;
  const gm__cold *cold = gm__arena_cold(arena, number);
  return !cold || !cold->guard.withheld;
}

void gm__arena_drop_cold(gm__arena *arena, uint32_t number) {
  uint64_t found;
  if (!(gm__arena_chunk(arena, number)->state & GM__CHUNK_COLD)) return;
  gm__arena_chunk(arena, number)->state &= GM__CHUNK_STATE;
  if (!gm__map_remove(&arena->cold, number, &found)) return;
  gm__release(arena_services(arena), (gm__cold *)(uintptr_t)found, sizeof(gm__cold));
}

void gm__arena_set_last_use(gm__arena *arena, uint32_t number, const gm__last_use *use) {
  gm__chunk *chunk = gm__arena_chunk(arena, number);
  gm__last_use kept = *use;
  kept.streams &= ~arena->order.ended;
  const bool waits = kept.has_point && kept.streams >> kept.point_slot & 1;
  gm__cold *cold = waits ? gm__arena_make_cold(arena, number) : NULL;
  if (cold) {
    *cold = (gm__cold){.use = kept};
  } else {
    gm__order_drop_point(&arena->order, &kept); /* its stream is done, or a later point will do */
    gm__arena_drop_cold(arena, number);
  }
  chunk->seq = kept.freed_at;
  chunk->cache = (uint8_t)(!kept.streams                       ? GM__STREAM_CACHE_IDLE
                           : kept.streams & (kept.streams - 1) ? GM__STREAM_CACHE_MIXED
                                                               : __builtin_ctzll(kept.streams));
  if (chunk->cache == GM__STREAM_CACHE_MIXED) chunk->streams = kept.streams;
}
