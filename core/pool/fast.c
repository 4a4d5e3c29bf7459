/* gm_alloc, gm_malloc, gm_free, gm_free_ptr: what nearly every call is, in as few steps as it takes; the rest is left
 * to acquire.c and release.c, which can do all of it. Invariants of the fast path: it asks no driver, takes no host
 * memory unless the pool is watched (watch.h), writes nothing that another thread reads often, and fails nothing:
 * whatever it does not expect it leaves as it is. */
#include "core/pool/acquire.h"
#include "core/pool/give.h"
#include "core/pool/release.h"
#include "core/pool/serve.h"

#define FAST_LIKELY(x) __builtin_expect(!!(x), 1)
#define FAST_UNLIKELY(x) __builtin_expect(!!(x), 0)
/* Quick lists are inlined into each call; what is rarer is one more call, so that they need no registers for it. */
#define FAST_INLINE static inline __attribute__((always_inline))
#define FAST_APART static __attribute__((noinline))

/* The calling thread's own arena in a pool that needs nothing but memory; false: not known here, or forked. */
FAST_INLINE bool fast_find(const gm_pool *pool, gm__arena **out) {
  const gm__thread_here *here = &gm__here;
  const uint64_t key = pool->fast_key;
  const size_t at = key % GM__HERE_SLOTS;
  if (FAST_UNLIKELY(atomic_load_explicit(pool->generation_at, memory_order_relaxed) != pool->generation)) return false;
  if (FAST_UNLIKELY(here->slots[at].key != key)) return false;
  *out = here->slots[at].value;
  return true;
}

/* Into it; false: others come often, and it takes the mutex. */
FAST_INLINE bool fast_enter(gm__arena *arena) { return FAST_LIKELY(gm__bias_enter(&arena->lock)); }

/* Plain memory, which every arena of a thread has. */
static inline bool fast_is_plain(const gm__arena *arena, const gm_request *request) {
  const uint32_t odd_flags = request->flags & ~(uint32_t)GM_INSERT_WAIT;
  const uint32_t odd_usage = request->usage & ~(uint32_t)(GM_USAGE_TRANSFER | GM_USAGE_STORAGE);
  const bool aligned = request->align <= gm__arena_granule(arena) && !(request->align & (request->align - 1));
  return !(odd_flags | odd_usage | (uint32_t)request->must_be) && !request->deadline_ns && aligned;
}

/* ---- handing out ---- */

/* Of a request; of no bytes: more than any span has. */
static inline uint64_t fast_granules(const gm__arena *arena, uint64_t bytes) {
  return ((bytes - 1) >> arena->shift) + 1;
}

static inline uint32_t fast_number(const gm__arena *arena, const gm__span *span) {
  return (uint32_t)(span - arena->spans.table);
}

/* A block of that size which the lane's stream freed, and nobody was told yet; NULL: none. */
FAST_INLINE gm__span *fast_quick(gm__arena *arena, gm__lane *lane, uint64_t granules, uint64_t bytes, uint32_t tag) {
  gm__quick *quick = gm__quick_of(lane, (uint32_t)granules);
  if (!gm__quick_has(quick, granules)) return NULL;
  gm__span *span = gm__arena_span(arena, gm__quick_pop(lane, quick, &arena->spans));
  span->role = lane->live_role;
  gm__tally_add(lane->hits, 1);
  gm__arena_count_out(arena, span, granules << arena->shift, bytes, tag);
  return span;
}

/* A hole that no stream uses, if it is tighter than the one that was found; 0: none. */
FAST_APART uint32_t fast_idle(const gm__arena *arena, uint32_t hole, uint32_t granules) {
  const gm__heap *heap = &arena->lanes[GM__LANE_IDLE]->heap;
  const gm__span *found = gm__arena_span(arena, hole);
  const bool may_be =
      !hole || (found->granules != granules && gm__heap_next(heap, gm__heap_bin(granules)) <= found->bin);
  const uint32_t other = may_be ? gm__heap_find(&arena->spans, heap, granules) : 0;
  return other && (!hole || gm__arena_span(arena, other)->granules < found->granules) ? other : 0;
}

/* One out of a hole of the lane, or out of an idle one, whichever is tighter; NULL: none, or not so easily. */
FAST_INLINE gm__span *fast_cut(gm__arena *arena, gm__lane *lane, uint64_t granules, uint64_t bytes, uint32_t tag) {
  gm__spans *spans = &arena->spans;
  gm__lane *idle = arena->lanes[GM__LANE_IDLE], *from = lane;
  const bool ready = arena->frees < arena->ask_after && spans->unused && arena->lookup.room;
  if (FAST_UNLIKELY(!ready || granules > UINT32_MAX)) return NULL;
  uint32_t hole = gm__heap_find(spans, &lane->heap, (uint32_t)granules);
  if (idle->heap.top && lane != idle) {
    const uint32_t other = fast_idle(arena, hole, (uint32_t)granules);
    if (other) from = idle;
    if (other) hole = other;
  }
  if (FAST_UNLIKELY(!hole)) return NULL;
  const uint32_t number = gm__hole_cut(arena, from, hole, (uint32_t)granules);
  gm__span *span = gm__span_at(spans, number);
  const bool rare = span->state & GM__SPAN_RARE; /* a whole hole with a point of its own */
  gm__lookup_insert(&arena->lookup, spans, number);
  span->role = from == lane ? lane->live_role : lane->idle_role;
  if (FAST_UNLIKELY(rare)) span->state |= GM__SPAN_RARE;
  gm__tally_add(&arena->tally.hole_hits, 1);
  gm__tally_add(from->hits, 1);
  gm__arena_count_out(arena, span, granules << arena->shift, bytes, tag);
  return span;
}

/* Entered; left. Whoever watches is told. */
FAST_INLINE void *fast_malloc_done(gm__arena *arena, const gm__span *span, gm_stream *stream) {
  void *pointer = (void *)(uintptr_t)span->address;
  if (FAST_UNLIKELY(arena->watched)) gm__watch_enter(arena, fast_number(arena, span), stream);
  gm__arena_unlock(arena);
  return pointer;
}

FAST_APART void *fast_malloc_told(gm__arena *arena, const gm__span *span, gm_stream *stream) {
  return fast_malloc_done(arena, span, stream);
}

/* Entered; left. Whoever watches is told. */
FAST_INLINE gm_acquire fast_alloc_done(gm__arena *arena, const gm__span *span, const gm_request *request,
                                       gm_block *out) {
  if (FAST_UNLIKELY(arena->watched)) gm__watch_enter(arena, fast_number(arena, span), request->stream);
  *out = gm__arena_block(arena, fast_number(arena, span));
  gm__arena_unlock(arena);
  return GM_ACQUIRE_OK;
}

FAST_APART gm_acquire fast_alloc_told(gm__arena *arena, const gm__span *span, const gm_request *request,
                                      gm_block *out) {
  return fast_alloc_done(arena, span, request, out);
}

/* Entered; left. */
FAST_APART gm_acquire fast_alloc_slow(gm__arena *arena, const gm_request *request, gm_block *out) {
  gm__arena_unlock(arena);
  return gm__acquire(arena->pool, request, out);
}

/* Entered; left. */
FAST_APART gm_acquire fast_alloc_cut(gm__arena *arena, gm__lane *lane, const gm_request *request, gm_block *out) {
  const uint64_t granules = fast_granules(arena, request->bytes);
  const gm__span *span = fast_cut(arena, lane, granules, request->bytes, request->tag);
  return FAST_LIKELY(span) ? fast_alloc_done(arena, span, request, out) : fast_alloc_slow(arena, request, out);
}

/* Others come often. */
FAST_APART gm_acquire fast_alloc_by_mutex(gm__arena *arena, const gm_request *request, gm_block *out) {
  gm__arena_lock(arena);
  gm__lane *lane = gm__arena_lane(arena, request->stream);
  if (!lane || !fast_is_plain(arena, request)) return fast_alloc_slow(arena, request, out);
  const uint64_t granules = fast_granules(arena, request->bytes);
  const gm__span *span = fast_quick(arena, lane, granules, request->bytes, request->tag);
  return span ? fast_alloc_done(arena, span, request, out) : fast_alloc_cut(arena, lane, request, out);
}

gm_acquire gm_alloc(gm_pool *pool, const gm_request *request, gm_block *out) {
  if (FAST_UNLIKELY(!pool || !request || !out || !gm__pool_is(pool))) return GM_ACQUIRE_INVALID;
  gm__arena *arena;
  if (FAST_UNLIKELY(!fast_find(pool, &arena))) return gm__acquire(pool, request, out);
  if (FAST_UNLIKELY(!fast_enter(arena))) return fast_alloc_by_mutex(arena, request, out);
  gm__lane *lane = gm__arena_lane(arena, request->stream);
  if (FAST_UNLIKELY(!lane || !fast_is_plain(arena, request))) return fast_alloc_slow(arena, request, out);
  const uint64_t granules = fast_granules(arena, request->bytes);
  const gm__span *span = fast_quick(arena, lane, granules, request->bytes, request->tag);
  if (!span) return fast_alloc_cut(arena, lane, request, out);
  if (FAST_UNLIKELY(arena->watched)) return fast_alloc_told(arena, span, request, out);
  *out = gm__arena_block(arena, fast_number(arena, span));
  gm__arena_leave(arena);
  return GM_ACQUIRE_OK;
}

FAST_APART void *fast_malloc_slow(gm_pool *pool, uint64_t bytes, gm_stream *stream) {
  gm_request request = {.bytes = bytes, .flags = GM_INSERT_WAIT, .stream = stream};
  gm_block block;
  gm_acquire answer = gm__acquire(pool, &request, &block);
  return answer == GM_ACQUIRE_OK || answer == GM_ACQUIRE_FRESH ? (void *)(uintptr_t)block.address : NULL;
}

/* Entered; left. */
FAST_APART void *fast_malloc_left(gm__arena *arena, uint64_t bytes, gm_stream *stream) {
  gm__arena_unlock(arena);
  return fast_malloc_slow(arena->pool, bytes, stream);
}

/* Entered; left. */
FAST_APART void *fast_malloc_cut(gm__arena *arena, gm__lane *lane, uint64_t bytes, gm_stream *stream) {
  const gm__span *span = fast_cut(arena, lane, fast_granules(arena, bytes), bytes, 0);
  return FAST_LIKELY(span) ? fast_malloc_done(arena, span, stream) : fast_malloc_left(arena, bytes, stream);
}

/* Others come often. */
FAST_APART void *fast_malloc_by_mutex(gm__arena *arena, uint64_t bytes, gm_stream *stream) {
  gm__arena_lock(arena);
  gm__lane *lane = gm__arena_lane(arena, stream);
  if (!lane) return fast_malloc_left(arena, bytes, stream);
  const gm__span *span = fast_quick(arena, lane, fast_granules(arena, bytes), bytes, 0);
  return span ? fast_malloc_done(arena, span, stream) : fast_malloc_cut(arena, lane, bytes, stream);
}

void *gm_malloc(gm_pool *pool, uint64_t bytes, gm_stream *stream) {
  if (FAST_UNLIKELY(!pool || !gm__pool_is(pool))) return NULL;
  gm__arena *arena;
  if (FAST_UNLIKELY(!fast_find(pool, &arena))) return fast_malloc_slow(pool, bytes, stream);
  if (FAST_UNLIKELY(!fast_enter(arena))) return fast_malloc_by_mutex(arena, bytes, stream);
  gm__lane *lane = gm__arena_lane(arena, stream);
  if (FAST_UNLIKELY(!lane)) return fast_malloc_left(arena, bytes, stream);
  const gm__span *span = fast_quick(arena, lane, fast_granules(arena, bytes), bytes, 0);
  if (!span) return fast_malloc_cut(arena, lane, bytes, stream);
  if (FAST_UNLIKELY(arena->watched)) return fast_malloc_told(arena, span, stream);
  void *pointer = (void *)(uintptr_t)span->address;
  gm__arena_leave(arena);
  return pointer;
}

/* ---- giving back ---- */

/* Entered; left. No quick list took the span at once. */
FAST_APART gm_status fast_free_hole(gm__arena *arena, uint32_t number, gm__lane *lane) {
  gm__hole_give(arena, number, lane);
  gm__arena_unlock(arena);
  return GM_OK;
}

/* Entered; left. The span, of `whole` bytes, is the lane's. */
FAST_INLINE gm_status fast_free_quiet(gm__arena *arena, gm__span *span, uint32_t number, gm__lane *lane,
                                      uint64_t whole) {
  const uint32_t granules = span->granules;
  gm__give_time(arena, span, lane);
  gm__arena_count_back(arena, span, whole);
  if (!gm__give_quick(arena, number, span, lane, granules)) return fast_free_hole(arena, number, lane);
  gm__arena_leave(arena);
  return GM_OK;
}

/* The same where somebody is to be told, as long as the span says what it was. */
FAST_APART gm_status fast_free_told(gm__arena *arena, uint32_t number, gm__lane *lane, const gm_stream *stream) {
  gm__span *span = gm__arena_span(arena, number);
  gm__watch_leave(arena, number, stream);
  return fast_free_quiet(arena, span, number, lane, gm__arena_bytes(arena, span));
}

/* Entered; left. */
FAST_APART gm_status fast_free_far(gm__arena *arena, const gm_block *block, gm_stream *stream) {
  const bool own = block->node >> GM__ARENA_SHIFT == arena->tag_of_blocks;
  const uint32_t number = own ? gm__arena_find(arena, block) : 0;
  const bool given = number && gm__give(arena, number, stream);
  gm__arena_unlock(arena);
  return FAST_LIKELY(given) ? GM_OK : gm__give_back(arena->pool, block, stream);
}

/* Others come often. */
FAST_APART gm_status fast_free_by_mutex(gm__arena *arena, const gm_block *block, gm_stream *stream) {
  gm__arena_lock(arena);
  return fast_free_far(arena, block, stream);
}

gm_status gm_free(gm_pool *pool, const gm_block *block, gm_stream *stream) {
  if (FAST_UNLIKELY(!pool || !block || !gm__pool_is(pool))) return GM_ERR_INVALID_ARGUMENT;
  gm__arena *arena;
  if (FAST_UNLIKELY(!fast_find(pool, &arena))) return gm__give_back(pool, block, stream);
  if (FAST_UNLIKELY(!fast_enter(arena))) return fast_free_by_mutex(arena, block, stream);
  gm__lane *lane = gm__arena_lane(arena, stream);
  const bool own = block->node >> GM__ARENA_SHIFT == arena->tag_of_blocks;
  const uint32_t number = FAST_LIKELY(own) ? gm__arena_find(arena, block) : 0;
  if (FAST_UNLIKELY(!lane || !number)) return fast_free_far(arena, block, stream);
  gm__span *span = gm__arena_span(arena, number);
  if (FAST_UNLIKELY(!gm__lane_owns(lane, span))) return fast_free_far(arena, block, stream);
  if (FAST_UNLIKELY(arena->watched)) return fast_free_told(arena, number, lane, stream);
  return fast_free_quiet(arena, span, number, lane, block->bytes);
}

/* Entered; left. */
FAST_APART gm_status fast_free_ptr_far(gm__arena *arena, void *pointer, uint64_t bytes, gm_stream *stream) {
  gm_pool *pool = arena->pool;
  const uint32_t number = gm__lookup_find(&arena->lookup, &arena->spans, (uintptr_t)pointer);
  const bool fits = number && bytes <= gm__arena_bytes(arena, gm__arena_span(arena, number));
  const bool given = fits && gm__give(arena, number, stream);
  gm__arena_unlock(arena);
  if (FAST_LIKELY(given)) return GM_OK;
  if (!number || (stream && stream->device != pool->device)) return gm__give_back_ptr(pool, pointer, bytes, stream);
  return gm__serve_give_back_at(arena, (uintptr_t)pointer, bytes, stream);
}

/* Others come often. */
FAST_APART gm_status fast_free_ptr_by_mutex(gm__arena *arena, void *pointer, uint64_t bytes, gm_stream *stream) {
  gm__arena_lock(arena);
  return fast_free_ptr_far(arena, pointer, bytes, stream);
}

gm_status gm_free_ptr(gm_pool *pool, void *pointer, uint64_t bytes_or_0, gm_stream *stream) {
  if (FAST_UNLIKELY(!pool || !gm__pool_is(pool))) return GM_ERR_INVALID_ARGUMENT;
  gm__arena *arena;
  if (FAST_UNLIKELY(!fast_find(pool, &arena))) return gm__give_back_ptr(pool, pointer, bytes_or_0, stream);
  if (FAST_UNLIKELY(!fast_enter(arena))) return fast_free_ptr_by_mutex(arena, pointer, bytes_or_0, stream);
  gm__lane *lane = gm__arena_lane(arena, stream);
  const uint32_t number = gm__lookup_find_home(&arena->lookup, &arena->spans, (uintptr_t)pointer);
  if (FAST_UNLIKELY(!lane || !number)) return fast_free_ptr_far(arena, pointer, bytes_or_0, stream);
  gm__span *span = gm__arena_span(arena, number);
  const uint64_t whole = gm__arena_bytes(arena, span);
  if (FAST_UNLIKELY(bytes_or_0 > whole || !gm__lane_owns(lane, span))) {
    return fast_free_ptr_far(arena, pointer, bytes_or_0, stream);
  }
  if (FAST_UNLIKELY(arena->watched)) return fast_free_told(arena, number, lane, stream);
  return fast_free_quiet(arena, span, number, lane, whole);
}
