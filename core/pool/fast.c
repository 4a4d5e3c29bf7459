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

/* The calling thread's arena in a pool that needs nothing but memory; NULL: not known here, or forked. */
static inline gm__arena *fast_arena(const gm_pool *pool) {
  if (FAST_UNLIKELY(atomic_load_explicit(pool->generation_at, memory_order_relaxed) != pool->generation)) return NULL;
  return gm__here_find(pool->fast_key);
}

/* Plain memory, which every arena of a thread has. */
static inline bool fast_is_plain(const gm__arena *arena, const gm_request *request) {
  const uint32_t odd_flags = request->flags & ~(uint32_t)GM_INSERT_WAIT;
  const uint32_t odd_usage = request->usage & ~(uint32_t)(GM_USAGE_TRANSFER | GM_USAGE_STORAGE);
  const bool aligned = request->align <= gm__arena_granule(arena) && !(request->align & (request->align - 1));
  return !(odd_flags | odd_usage | (uint32_t)request->must_be) && !request->deadline_ns && aligned;
}

/* Does the heap have a hole in a bin that is not above that of the one that was found? */
static inline bool fast_may_be_tighter(const gm__heap *heap, const gm__span *found, uint32_t granules) {
  return found->granules != granules && gm__heap_next(heap, gm__heap_bin(granules)) <= found->bin;
}

/* A hole of the lane, or an idle one, whichever is tighter, cut to size. */
FAST_APART uint32_t fast_cut(gm__arena *arena, gm__lane *lane, uint32_t granules) {
  gm__spans *spans = &arena->spans;
  if (FAST_UNLIKELY(arena->frees >= arena->ask_after || !spans->unused || !arena->lookup.room)) return 0;
  uint32_t hole = gm__heap_find(spans, &lane->heap, granules);
  gm__lane *idle = arena->lanes[GM__LANE_IDLE];
  const gm__span *found = gm__span_at(spans, hole);
  if (lane != idle && idle->heap.top && (!hole || fast_may_be_tighter(&idle->heap, found, granules))) {
    const uint32_t other = gm__heap_find(spans, &idle->heap, granules);
    if (other && (!hole || gm__span_at(spans, other)->granules < found->granules)) {
      hole = other;
      lane = idle;
    }
  }
  if (FAST_UNLIKELY(!hole)) return 0;
  const uint32_t number = gm__hole_cut(arena, lane, hole, granules);
  gm__lookup_insert(&arena->lookup, gm__span_at(spans, number)->address, number);
  gm__tally_add(&arena->tally.hole_hits, 1);
  return number;
}

/* Inside the lock. 0: not so easily. */
FAST_INLINE uint32_t fast_take(gm__arena *arena, uint64_t bytes, const gm_stream *stream, uint32_t tag) {
  const uint64_t granules = (bytes + gm__arena_granule(arena) - 1) >> arena->shift;
  gm__lane *lane = gm__arena_lane(arena, stream);
  if (FAST_UNLIKELY(!lane || granules - 1 >= UINT32_MAX)) return 0;
  uint32_t number = gm__quick_take(lane, &arena->spans, (uint32_t)granules);
  if (!number) number = fast_cut(arena, lane, (uint32_t)granules);
  if (FAST_UNLIKELY(!number)) return 0;
  gm__span *span = gm__arena_span(arena, number);
  const bool same = stream && span->lane == lane->number;
  gm__tally_add(same ? &arena->tally.stream_hits : &arena->tally.global_hits, 1);
  gm__arena_hand_out(arena, span, bytes, tag, lane->number);
  if (FAST_UNLIKELY(arena->watched)) gm__watch_enter(arena, number, stream);
  return number;
}

gm_acquire gm_alloc(gm_pool *pool, const gm_request *request, gm_block *out) {
  if (FAST_UNLIKELY(!pool || !request || !out || !gm__pool_is(pool))) return GM_ACQUIRE_INVALID;
  gm__arena *arena = fast_arena(pool);
  if (FAST_LIKELY(arena && fast_is_plain(arena, request) && gm__bias_enter(&arena->lock, gm__thread_self()))) {
    const uint32_t number = fast_take(arena, request->bytes, request->stream, request->tag);
    if (number) *out = gm__arena_block(arena, number);
    gm__arena_leave(arena);
    if (FAST_LIKELY(number)) return GM_ACQUIRE_OK;
  }
  return gm__acquire(pool, request, out);
}

FAST_APART void *fast_malloc_slow(gm_pool *pool, uint64_t bytes, gm_stream *stream) {
  gm_request request = {.bytes = bytes, .flags = GM_INSERT_WAIT, .stream = stream};
  gm_block block;
  gm_acquire answer = gm__acquire(pool, &request, &block);
  return answer == GM_ACQUIRE_OK || answer == GM_ACQUIRE_FRESH ? (void *)(uintptr_t)block.address : NULL;
}

void *gm_malloc(gm_pool *pool, uint64_t bytes, gm_stream *stream) {
  if (FAST_UNLIKELY(!pool || !gm__pool_is(pool))) return NULL;
  gm__arena *arena = fast_arena(pool);
  if (FAST_LIKELY(arena && gm__bias_enter(&arena->lock, gm__thread_self()))) {
    const uint32_t number = fast_take(arena, bytes, stream, 0);
    void *pointer = (void *)(uintptr_t)gm__arena_span(arena, number)->address;
    gm__arena_leave(arena);
    if (FAST_LIKELY(number)) return pointer;
  }
  return fast_malloc_slow(pool, bytes, stream);
}

gm_status gm_free(gm_pool *pool, const gm_block *block, gm_stream *stream) {
  if (FAST_UNLIKELY(!pool || !block || !gm__pool_is(pool))) return GM_ERR_INVALID_ARGUMENT;
  gm__arena *arena = fast_arena(pool);
  if (FAST_LIKELY(arena && block->node >> GM__ARENA_SHIFT == arena->tag_of_blocks &&
                  gm__bias_enter(&arena->lock, gm__thread_self()))) {
    const uint32_t number = gm__arena_find(arena, block);
    const bool given = number && gm__give(arena, number, stream);
    gm__arena_leave(arena);
    if (FAST_LIKELY(given)) return GM_OK;
  }
  return gm__give_back(pool, block, stream);
}

/* The pointer is of the thread's own arena. */
FAST_APART gm_status fast_give_slowly(const gm_pool *pool, gm__arena *arena, const void *pointer, uint64_t bytes,
                                      gm_stream *stream) {
  if (stream && stream->device != pool->device) return GM_ERR_INVALID_ARGUMENT;
  return gm__serve_give_back_at(arena, (uintptr_t)pointer, bytes, stream);
}

gm_status gm_free_ptr(gm_pool *pool, void *pointer, uint64_t bytes_or_0, gm_stream *stream) {
  if (FAST_UNLIKELY(!pool || !gm__pool_is(pool))) return GM_ERR_INVALID_ARGUMENT;
  gm__arena *arena = fast_arena(pool);
  if (FAST_LIKELY(arena && gm__bias_enter(&arena->lock, gm__thread_self()))) {
    const uint32_t number = gm__lookup_find(&arena->lookup, &arena->spans, (uintptr_t)pointer);
    const bool given = number && bytes_or_0 <= gm__arena_bytes(arena, gm__arena_span(arena, number)) &&
                       gm__give(arena, number, stream);
    gm__arena_leave(arena);
    if (FAST_LIKELY(given)) return GM_OK;
    if (number) return fast_give_slowly(pool, arena, pointer, bytes_or_0, stream);
  }
  return gm__give_back_ptr(pool, pointer, bytes_or_0, stream);
}
