/* gm_alloc, gm_malloc, gm_free, gm_free_ptr: what nearly every call is, in as few steps as it takes. The rest is left
 * to alloc.c and free.c, which can do all of it. Invariants of the fast path: it asks no driver. It takes no host
 * memory unless the pool is observed (observe.h). It writes nothing that another thread reads often. It refuses
 * nothing: what it does not expect it leaves as it is. */
#include "core/arena/arena_alloc.h"
#include "core/arena/free_fast.h"
#include "core/arena/wish_fast.h"
#include "core/pool/alloc.h"
#include "core/pool/free.h"

#define FAST_LIKELY(x) __builtin_expect(!!(x), 1)
#define FAST_UNLIKELY(x) __builtin_expect(!!(x), 0)
/* A hit on a quick list is inlined into each call. All rarer work is one more call, which needs no registers here. */
#define FAST_INLINE static inline __attribute__((always_inline))
#define FAST_APART static __attribute__((noinline))

/* Finds the calling thread's own arena, in a pool that needs memory alone. False: none, or the process was forked. */
FAST_INLINE bool fast_find(const gm_pool *pool, gm__arena **out) {
  const gm__thread_here *here = &gm__here;
  const uint64_t key = pool->fast_key;
  const size_t at = key % GM__HERE_SLOTS;
  if (FAST_UNLIKELY(atomic_load_explicit(pool->generation_at, memory_order_relaxed) != pool->generation)) return false;
  if (FAST_UNLIKELY(here->slots[at].key != key)) return false;
  *out = here->slots[at].value;
  return true;
}

/* Locks the arena the cheap way. False: other threads come often, and it takes the mutex. */
FAST_INLINE bool fast_enter(gm__arena *arena) { return FAST_LIKELY(gm__bias_enter(&arena->lock)); }

/* ---- handing out ---- */

/* The request's size in granules. For 0 bytes it is more than any chunk has. */
static inline uint64_t fast_granules(const gm__arena *arena, uint64_t bytes) {
  return ((bytes - 1) >> arena->shift) + 1;
}

static inline uint32_t fast_number(const gm__arena *arena, const gm__chunk *chunk) {
  return (uint32_t)(chunk - arena->chunks.table);
}

/* Takes a chunk of that size which the cache's stream has just freed; NULL: none. */
FAST_INLINE gm__chunk *fast_quick(gm__arena *arena, gm__stream_cache *cache, uint64_t granules, uint64_t bytes,
                                  uint32_t tag) {
  gm__quick *quick = gm__quick_of(cache, (uint32_t)granules);
  if (!gm__quick_has(quick, granules)) return NULL;
  gm__chunk *chunk = gm__arena_chunk(arena, gm__quick_pop(cache, quick, &arena->chunks));
  chunk->role = cache->live_role;
  gm__arena_stats_add(cache->hits, 1);
  gm__arena_count_out(arena, chunk, granules << arena->shift, bytes, tag);
  return chunk;
}

/* Finds a free chunk that no stream uses, if it is tighter than `free_chunk`; 0: none. */
FAST_APART uint32_t fast_idle(const gm__arena *arena, const gm__tlsf *tlsf, uint32_t free_chunk, uint32_t granules) {
  const gm__chunk *found = gm__arena_chunk(arena, free_chunk);
  const bool may_be =
      !free_chunk || (found->granules != granules && gm__tlsf_next(tlsf, gm__tlsf_bin(granules)) <= found->bin);
  const uint32_t other = may_be ? gm__tlsf_find(&arena->chunks, tlsf, granules) : 0;
  return other && (!free_chunk || gm__arena_chunk(arena, other)->granules < found->granules) ? other : 0;
}

/* Cuts a chunk out of a free chunk of the stream cache, or of one that no stream uses, whichever is tighter. NULL:
 * none, or not so easily. */
FAST_INLINE gm__chunk *fast_cut(gm__arena *arena, gm__stream_cache *cache, uint64_t granules, uint64_t bytes,
                                uint32_t tag) {
  gm__chunks *chunks = &arena->chunks;
  gm__stream_cache *idle = arena->caches[GM__STREAM_CACHE_IDLE], *from = cache;
  const bool ready = arena->frees < arena->ask_after && chunks->unused && arena->lookup.room;
  if (FAST_UNLIKELY(!ready || granules > UINT32_MAX)) return NULL;
  const gm__area area = gm__arena_area(arena, granules);
  gm__tlsf *bins = &cache->tlsf[area], *others = &idle->tlsf[area];
  uint32_t free_chunk = gm__tlsf_find(chunks, bins, (uint32_t)granules);
  if (others->top && cache != idle) {
    const uint32_t other = fast_idle(arena, others, free_chunk, (uint32_t)granules);
    if (other) from = idle;
    if (other) bins = others;
    if (other) free_chunk = other;
  }
  if (FAST_UNLIKELY(!free_chunk)) return NULL;
  const uint32_t number = gm__free_chunk_cut(arena, bins, free_chunk, (uint32_t)granules);
  gm__chunk *chunk = gm__chunk_at(chunks, number);
  const bool cold = chunk->state & GM__CHUNK_COLD; /* all of a free chunk, which has a point of its own */
  gm__lookup_insert(&arena->lookup, chunks, number);
  chunk->role = from == cache ? cache->live_role : cache->idle_role;
  if (FAST_UNLIKELY(cold)) chunk->state |= GM__CHUNK_COLD;
  gm__arena_stats_add(&arena->stats.free_chunk_hits, 1);
  gm__arena_stats_add(from->hits, 1);
  gm__arena_count_out(arena, chunk, granules << arena->shift, bytes, tag);
  return chunk;
}

/* Hands the chunk out, and tells the observers. REQUIRES: arena lock. RELEASES: arena lock. */
FAST_INLINE void *fast_malloc_done(gm__arena *arena, const gm__chunk *chunk, gm_stream *stream) {
  void *pointer = (void *)(uintptr_t)chunk->address;
  if (FAST_UNLIKELY(arena->observed)) gm__observe_enter(arena, fast_number(arena, chunk), stream, false);
  gm__arena_unlock(arena);
  return pointer;
}

FAST_APART void *fast_malloc_told(gm__arena *arena, const gm__chunk *chunk, gm_stream *stream) {
  return fast_malloc_done(arena, chunk, stream);
}

/* Hands the chunk out, and tells the observers. REQUIRES: arena lock. RELEASES: arena lock. */
FAST_INLINE gm_acquire fast_alloc_done(gm__arena *arena, const gm__chunk *chunk, const gm_request *request,
                                       gm_block *out) {
  if (FAST_UNLIKELY(arena->observed)) gm__observe_enter(arena, fast_number(arena, chunk), request->stream, false);
  *out = gm__arena_block(arena, fast_number(arena, chunk));
  gm__arena_unlock(arena);
  return GM_ACQUIRE_OK;
}

FAST_APART gm_acquire fast_alloc_told(gm__arena *arena, const gm__chunk *chunk, const gm_request *request,
                                      gm_block *out) {
  return fast_alloc_done(arena, chunk, request, out);
}

/* Leaves the request to alloc.c. REQUIRES: arena lock. RELEASES: arena lock. */
FAST_APART gm_acquire fast_alloc_slow(gm__arena *arena, const gm_request *request, gm_block *out) {
  gm__arena_unlock(arena);
  return gm__pool_alloc(gm__pool_of(arena->set), request, out);
}

/* Serves the request out of a free chunk. REQUIRES: arena lock. RELEASES: arena lock. */
FAST_APART gm_acquire fast_alloc_cut(gm__arena *arena, gm__stream_cache *cache, const gm_request *request,
                                     gm_block *out) {
  const uint64_t granules = fast_granules(arena, request->bytes);
  const gm__chunk *chunk = fast_cut(arena, cache, granules, request->bytes, request->tag);
  return FAST_LIKELY(chunk) ? fast_alloc_done(arena, chunk, request, out) : fast_alloc_slow(arena, request, out);
}

/* Serves a request that asks for certain memory. REQUIRES: lock of the thread's own arena. RELEASES: that lock. */
FAST_APART gm_acquire fast_alloc_wish(gm__arena *own, const gm_request *request, gm_block *out) {
  gm__arena *arena = gm__wish_arena(own, request);
  if (FAST_UNLIKELY(!arena)) return fast_alloc_slow(own, request, out);
  gm__arena_step(own, arena);
  gm__stream_cache *cache = gm__arena_cache(arena, request->stream);
  const uint64_t granules = fast_granules(arena, request->bytes);
  const bool ready = cache && gm__wish_is_ready(arena, cache, granules, request);
  if (FAST_UNLIKELY(!ready)) return fast_alloc_slow(arena, request, out);
  const gm__chunk *chunk = fast_quick(arena, cache, granules, request->bytes, request->tag);
  return FAST_LIKELY(chunk) ? fast_alloc_done(arena, chunk, request, out) : fast_alloc_cut(arena, cache, request, out);
}

/* Locks the mutex first, because other threads come often. */
FAST_APART gm_acquire fast_alloc_by_mutex(gm__arena *arena, const gm_request *request, gm_block *out) {
  gm__arena_lock(arena);
  gm__stream_cache *cache = gm__arena_cache(arena, request->stream);
  if (!cache || !gm__wish_is_plain(request, gm__arena_granule(arena))) return fast_alloc_wish(arena, request, out);
  const uint64_t granules = fast_granules(arena, request->bytes);
  const gm__chunk *chunk = fast_quick(arena, cache, granules, request->bytes, request->tag);
  return chunk ? fast_alloc_done(arena, chunk, request, out) : fast_alloc_cut(arena, cache, request, out);
}

gm_acquire gm_alloc(gm_pool *pool, const gm_request *request, gm_block *out) {
  if (FAST_UNLIKELY(!pool || !request || !out || !gm__pool_is(pool))) return GM_ACQUIRE_INVALID;
  gm__arena *arena;
  if (FAST_UNLIKELY(!fast_find(pool, &arena))) return gm__pool_alloc(pool, request, out);
  if (FAST_UNLIKELY(!fast_enter(arena))) return fast_alloc_by_mutex(arena, request, out);
  gm__stream_cache *cache = gm__arena_cache(arena, request->stream);
  if (FAST_UNLIKELY(!cache || !gm__wish_is_plain(request, gm__arena_granule(arena))))
    return fast_alloc_wish(arena, request, out);
  const uint64_t granules = fast_granules(arena, request->bytes);
  const gm__chunk *chunk = fast_quick(arena, cache, granules, request->bytes, request->tag);
  if (!chunk) return fast_alloc_cut(arena, cache, request, out);
  if (FAST_UNLIKELY(arena->observed)) return fast_alloc_told(arena, chunk, request, out);
  *out = gm__arena_block(arena, fast_number(arena, chunk));
  gm__arena_leave(arena);
  return GM_ACQUIRE_OK;
}

FAST_APART void *fast_malloc_slow(gm_pool *pool, uint64_t bytes, gm_stream *stream) {
  gm_request request = {.bytes = bytes, .flags = GM_INSERT_WAIT, .stream = stream};
  gm_block block;
  gm_acquire answer = gm__pool_alloc(pool, &request, &block);
  return answer == GM_ACQUIRE_OK || answer == GM_ACQUIRE_FRESH ? (void *)(uintptr_t)block.address : NULL;
}

/* Leaves the request to alloc.c. REQUIRES: arena lock. RELEASES: arena lock. */
FAST_APART void *fast_malloc_leave(gm__arena *arena, uint64_t bytes, gm_stream *stream) {
  gm__arena_unlock(arena);
  return fast_malloc_slow(gm__pool_of(arena->set), bytes, stream);
}

/* Serves the request out of a free chunk. REQUIRES: arena lock. RELEASES: arena lock. */
FAST_APART void *fast_malloc_cut(gm__arena *arena, gm__stream_cache *cache, uint64_t bytes, gm_stream *stream) {
  const gm__chunk *chunk = fast_cut(arena, cache, fast_granules(arena, bytes), bytes, 0);
  return FAST_LIKELY(chunk) ? fast_malloc_done(arena, chunk, stream) : fast_malloc_leave(arena, bytes, stream);
}

/* Locks the mutex first, because other threads come often. */
FAST_APART void *fast_malloc_by_mutex(gm__arena *arena, uint64_t bytes, gm_stream *stream) {
  gm__arena_lock(arena);
  gm__stream_cache *cache = gm__arena_cache(arena, stream);
  if (!cache) return fast_malloc_leave(arena, bytes, stream);
  const gm__chunk *chunk = fast_quick(arena, cache, fast_granules(arena, bytes), bytes, 0);
  return chunk ? fast_malloc_done(arena, chunk, stream) : fast_malloc_cut(arena, cache, bytes, stream);
}

void *gm_malloc(gm_pool *pool, uint64_t bytes, gm_stream *stream) {
  if (FAST_UNLIKELY(!pool || !gm__pool_is(pool))) return NULL;
  gm__arena *arena;
  if (FAST_UNLIKELY(!fast_find(pool, &arena))) return fast_malloc_slow(pool, bytes, stream);
  if (FAST_UNLIKELY(!fast_enter(arena))) return fast_malloc_by_mutex(arena, bytes, stream);
  gm__stream_cache *cache = gm__arena_cache(arena, stream);
  if (FAST_UNLIKELY(!cache)) return fast_malloc_leave(arena, bytes, stream);
  const gm__chunk *chunk = fast_quick(arena, cache, fast_granules(arena, bytes), bytes, 0);
  if (!chunk) return fast_malloc_cut(arena, cache, bytes, stream);
  if (FAST_UNLIKELY(arena->observed)) return fast_malloc_told(arena, chunk, stream);
  void *pointer = (void *)(uintptr_t)chunk->address;
  gm__arena_leave(arena);
  return pointer;
}

/* ---- freeing ---- */

/* Keeps a chunk that no quick list took. REQUIRES: arena lock. RELEASES: arena lock. */
FAST_APART gm_status fast_free_keep(gm__arena *arena, uint32_t number, gm__stream_cache *cache) {
  gm__free_chunk_keep(arena, number, cache);
  gm__arena_unlock(arena);
  return GM_OK;
}

/* Frees a chunk of `bytes` bytes that belongs to the stream cache. REQUIRES: arena lock. RELEASES: arena lock. */
FAST_INLINE gm_status fast_free_quiet(gm__arena *arena, gm__chunk *chunk, uint32_t number, gm__stream_cache *cache,
                                      uint64_t bytes) {
  const uint32_t granules = chunk->granules;
  gm__free_stamp(arena, chunk, cache);
  gm__arena_count_back(arena, chunk, bytes);
  if (!gm__free_quick(arena, number, chunk, cache, granules)) return fast_free_keep(arena, number, cache);
  gm__arena_leave(arena);
  return GM_OK;
}

/* Frees a chunk of an observed arena: the observers are told while the chunk still says what it was. REQUIRES: arena
 * lock. RELEASES: arena lock. */
FAST_APART gm_status fast_free_told(gm__arena *arena, uint32_t number, gm__stream_cache *cache,
                                    const gm_stream *stream) {
  gm__chunk *chunk = gm__arena_chunk(arena, number);
  gm__observe_leave(arena, number, stream);
  return fast_free_quiet(arena, chunk, number, cache, gm__arena_bytes(arena, chunk));
}

/* Frees a block of another arena, or one that is not the stream cache's own. REQUIRES: lock of the thread's own arena.
 * RELEASES: that lock. */
FAST_APART gm_status fast_free_far(gm__arena *own, const gm_block *block, gm_stream *stream) {
  gm__arena *of = gm__arena_of_block(own->set, block), *arena = of ? of : own;
  gm__arena_step(own, arena);
  const uint32_t number = of ? gm__arena_find(arena, block) : 0;
  const bool freed = number && gm__free_fast(arena, number, stream);
  gm__arena_unlock(arena);
  return FAST_LIKELY(freed) ? GM_OK : gm__block_free(gm__pool_of(arena->set), block, stream);
}

/* Locks the mutex first, because other threads come often. */
FAST_APART gm_status fast_free_by_mutex(gm__arena *arena, const gm_block *block, gm_stream *stream) {
  gm__arena_lock(arena);
  return fast_free_far(arena, block, stream);
}

gm_status gm_free(gm_pool *pool, const gm_block *block, gm_stream *stream) {
  if (FAST_UNLIKELY(!pool || !block || !gm__pool_is(pool))) return GM_ERR_INVALID_ARGUMENT;
  gm__arena *arena;
  if (FAST_UNLIKELY(!fast_find(pool, &arena))) return gm__block_free(pool, block, stream);
  if (FAST_UNLIKELY(!fast_enter(arena))) return fast_free_by_mutex(arena, block, stream);
  gm__stream_cache *cache = gm__arena_cache(arena, stream);
  const bool own = block->number >> GM__ARENA_SHIFT == arena->tag_of_blocks;
  const uint32_t number = FAST_LIKELY(own) ? gm__arena_find(arena, block) : 0;
  if (FAST_UNLIKELY(!cache || !number)) return fast_free_far(arena, block, stream);
  gm__chunk *chunk = gm__arena_chunk(arena, number);
  if (FAST_UNLIKELY(!gm__stream_cache_owns(cache, chunk))) return fast_free_far(arena, block, stream);
  if (FAST_UNLIKELY(arena->observed)) return fast_free_told(arena, number, cache, stream);
  return fast_free_quiet(arena, chunk, number, cache, block->bytes);
}

/* Frees a pointer that is not the stream cache's own. REQUIRES: arena lock. RELEASES: arena lock. */
FAST_APART gm_status fast_free_ptr_far(gm__arena *arena, void *pointer, uint64_t bytes, gm_stream *stream) {
  gm_pool *pool = gm__pool_of(arena->set);
  const uint32_t number = gm__lookup_find(&arena->lookup, &arena->chunks, (uintptr_t)pointer);
  const bool fits = number && bytes <= gm__arena_bytes(arena, gm__arena_chunk(arena, number));
  const bool freed = fits && gm__free_fast(arena, number, stream);
  gm__arena_unlock(arena);
  if (FAST_LIKELY(freed)) return GM_OK;
  if (!number || pool->guard || pool->heap.keep.strict || (stream && stream->device != pool->device))
    return gm__block_free_ptr(pool, pointer, bytes, stream);
  return gm__arena_free_at(arena, (uintptr_t)pointer, bytes, stream);
}

/* Locks the mutex first, because other threads come often. */
FAST_APART gm_status fast_free_ptr_by_mutex(gm__arena *arena, void *pointer, uint64_t bytes, gm_stream *stream) {
  gm__arena_lock(arena);
  return fast_free_ptr_far(arena, pointer, bytes, stream);
}

gm_status gm_free_ptr(gm_pool *pool, void *pointer, uint64_t bytes_or_0, gm_stream *stream) {
  if (FAST_UNLIKELY(!pool || !gm__pool_is(pool))) return GM_ERR_INVALID_ARGUMENT;
  gm__arena *arena;
  if (FAST_UNLIKELY(!fast_find(pool, &arena))) return gm__block_free_ptr(pool, pointer, bytes_or_0, stream);
  if (FAST_UNLIKELY(!fast_enter(arena))) return fast_free_ptr_by_mutex(arena, pointer, bytes_or_0, stream);
  gm__stream_cache *cache = gm__arena_cache(arena, stream);
  const uint32_t number = gm__lookup_find_home(&arena->lookup, &arena->chunks, (uintptr_t)pointer);
  if (FAST_UNLIKELY(!cache || !number)) return fast_free_ptr_far(arena, pointer, bytes_or_0, stream);
  gm__chunk *chunk = gm__arena_chunk(arena, number);
  const uint64_t whole = gm__arena_bytes(arena, chunk);
  if (FAST_UNLIKELY(bytes_or_0 > whole || !gm__stream_cache_owns(cache, chunk))) {
    return fast_free_ptr_far(arena, pointer, bytes_or_0, stream);
  }
  if (FAST_UNLIKELY(arena->observed)) return fast_free_told(arena, number, cache, stream);
  return fast_free_quiet(arena, chunk, number, cache, whole);
}
