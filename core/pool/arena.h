/* Arenas: what serves the requests of one thread (and of streams first used there), or those for a rare kind of memory.
 * An arena has segments, their spans, and lanes of holes. A pool's arenas live as long as the pool. */
#ifndef GM_CORE_POOL_ARENA_H
#define GM_CORE_POOL_ARENA_H

#include "core/base/bias_lock.h"
#include "core/base/map.h"
#include "core/base/thread_here.h"
#include "core/pool/lane.h"
#include "core/pool/lookup.h"
#include "core/pool/pool.h"
#include "core/pool/segment.h"
#include "core/pool/watch.h"
#include "core/track/ledger.h"

enum {
  GM__ARENA_STREAM_BITS = 6,
  GM__ARENA_STREAMS = 1 << GM__ARENA_STREAM_BITS, /* places of the table from stream to lane */
  GM__ARENA_ASK_AFTER = 64,                       /* frees, where there are several streams */
  GM__ARENA_SHIFT = 24                            /* in gm_block.node: the number of the arena begins there */
};

#define GM__ARENA_BLOCK UINT32_C(0x80000000) /* in gm_block.node: a span of an arena */

/* Written inside the arena's lock, read by anybody. */
typedef struct gm__tally {
  _Atomic uint64_t in_use, requested, peak_in_use, peak_requested;
  _Atomic uint64_t stream_hits, global_hits, misses, frees;
  _Atomic uint64_t hole_hits;   /* of the hits: not out of a quick list */
  _Atomic uint64_t reclaimable; /* as of the last look */
} gm__tally;

typedef struct gm__arena_stream {
  const gm_stream *stream; /* NULL: the host */
  gm__lane *lane;
} gm__arena_stream;

struct gm__arena {
  gm__bias_lock lock; /* of all below */
  gm_pool *pool;
  uint32_t number, tag_of_blocks; /* the high bits of gm_block.node */
  uint32_t shift;                 /* a granule is 1 << shift bytes */
  uint32_t frees, ask_after;      /* since streams were asked how far they are; how many it may be */
  uint32_t quick_most;            /* granules: larger spans are in no quick list */
  bool common;                    /* for the requests of a thread; else for a rare kind */
  bool mixes;                     /* at most one stream: holes of it and idle ones are joined at once */
  bool watched;                   /* what is handed out and comes back is told to watch.h */
  gm__spans spans;
  gm__lookup lookup;
  gm__arena_stream streams[GM__ARENA_STREAMS]; /* a cache */
  gm__lane *lanes[GM__LANES];                  /* NULL: no holes */
  gm__tally tally;
  gm__ledger ledger; /* open while the pool is tracked */
  gm__tape *tape;    /* while it is recorded */
  gm__order order;
  gm__map rare; /* number of a span to its gm__rare */
  gm__memory_kind kind;
  gm__segment *segments; /* newest first */
  uint32_t gaps;         /* of its ranges: window.c; 0: none */
  uint32_t stranded;     /* spans of its ranges that stay AWAY for now: window.c; 0: none */
  gm__segment **homes;   /* by number, from 1 */
  uint32_t home_count, home_capacity;
  uint64_t noted;            /* of tally.reclaimable: what the device was told */
  gm__thread_life *life;     /* of the thread that it was made for; NULL: nobody's */
  struct gm__quotas *quotas; /* its blocks are counted there, and the fast path finds no lane; NULL: not (yet) */
  uint64_t mapped_pages; /* of its ranges; this and what follows under the lock of the pool's pages, not the arena's */
  uint64_t ask_at;       /* how many frees it must have seen before another arena asks it for idle pages again */
};

/* The arena for requests of that kind by the calling thread: found, taken over, or made. NULL without host memory, and
 * when none serves and there can be no more (gm__arena_missing). */
gm__arena *gm__arena_of(gm_pool *pool, const gm__memory_kind *kind);

/* The same, but none is made or taken over: NULL where one would be made, or refused. */
gm__arena *gm__arena_expected(gm_pool *pool, const gm__memory_kind *kind);

/* That for requests which are content with memory that the common arenas do not have: of that kind, or of one that does
 * as well. */
gm__arena *gm__arena_beside(gm_pool *pool, const gm__memory_kind *kind);

/* Is there room in the pool for one more arena of that kind? */
bool gm__arena_may_be_made(const gm_pool *pool, const gm__memory_kind *kind);

/* Why there was none for a request. */
gm_status gm__arena_missing(const gm_pool *pool, gm_error *err);

/* By number; NULL: none. Number 0 on: all of a pool. */
gm__arena *gm__arena_at(const gm_pool *pool, uint32_t number);

/* The arena that the block says it is of; NULL: it is none. */
static inline gm__arena *gm__arena_of_block(const gm_pool *pool, const gm_block *block) {
  return block->node & GM__ARENA_BLOCK ? gm__arena_at(pool, (block->node & ~GM__ARENA_BLOCK) >> GM__ARENA_SHIFT) : NULL;
}

/* Add what the pool's arenas count to `out`. Takes no lock. */
void gm__arenas_add(const gm_pool *pool, gm_stats *out);

/* Bring the figures of arenas up to date that the calling thread gets into without disturbing another one. */
void gm__arenas_look(gm_pool *pool);

/* Blocks are counted from now on: what is handed out and taken back goes no fast way. Inside the arena's lock. */
void gm__arena_count_in(gm__arena *arena, struct gm__quotas *quotas);

/* Its owner has it still: a guard may hold a block back that was freed. Inside the arena's lock. */
bool gm__arena_is_out(const gm__arena *arena, uint32_t number);

/* At the pool's end. */
void gm__arenas_clear(gm_pool *pool, gm_close_mode mode);

static inline void gm__arena_lock(gm__arena *arena) { gm__bias_lock_in(&arena->lock, gm__thread_self()); }
static inline void gm__arena_unlock(gm__arena *arena) { gm__bias_lock_out(&arena->lock, gm__thread_self()); }

/* Out of a lock that gm__bias_enter opened. */
static inline void gm__arena_leave(gm__arena *arena) { gm__bias_leave(&arena->lock); }

static inline uint64_t gm__arena_granule(const gm__arena *arena) { return UINT64_C(1) << arena->shift; }

static inline uint64_t gm__arena_bytes(const gm__arena *arena, const gm__span *span) {
  return (uint64_t)span->granules << arena->shift;
}

static inline gm__span *gm__arena_span(const gm__arena *arena, uint32_t number) {
  return gm__span_at(&arena->spans, number);
}

/* What was asked for of a live span. */
static inline uint64_t gm__arena_requested(const gm__arena *arena, gm__span *span) {
  return gm__arena_bytes(arena, span) - span->slack;
}

static inline uint8_t gm__span_is(const gm__span *span) { return span->state & GM__SPAN_STATE; }

/* A relaxed single writer's additions. */
static inline void gm__tally_add(_Atomic uint64_t *counter, uint64_t n) {
  atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
}

static inline void gm__tally_grow(_Atomic uint64_t *counter, _Atomic uint64_t *peak, uint64_t n) {
  const uint64_t now = atomic_load_explicit(counter, memory_order_relaxed) + n;
  atomic_store_explicit(counter, now, memory_order_relaxed);
  if (now > atomic_load_explicit(peak, memory_order_relaxed)) atomic_store_explicit(peak, now, memory_order_relaxed);
}

static inline size_t gm__arena_stream_place(const gm_stream *stream) {
  return (uint64_t)(uintptr_t)stream * UINT64_C(0x9e3779b97f4a7c15) >> (64 - GM__ARENA_STREAM_BITS);
}

/* The lane of the stream where it is known at once, of the host for NULL; NULL: gm__arena_slot knows more, or blocks
 * are counted. */
static inline gm__lane *gm__arena_lane(const gm__arena *arena, const gm_stream *stream) {
  const gm__arena_stream *known = &arena->streams[gm__arena_stream_place(stream)];
  if (__builtin_expect(known->stream == stream, 1)) return known->lane;
  return stream ? NULL : arena->lanes[GM__LANE_IDLE];
}

/* A lane keeps at most so many in its quick lists. */
static inline uint32_t gm__pool_quick(const gm_pool *pool) {
  return atomic_load_explicit(&pool->quick_blocks, memory_order_relaxed);
}

/* For the record: the lane of the stream that asked. */
static inline uint8_t gm__arena_request_lane(const gm__arena *arena, const gm_stream *stream) {
  const int slot = gm__order_find(&arena->order, stream);
  return (uint8_t)(!stream ? GM__LANE_IDLE : slot == GM__ORDER_HOST ? GM__LANE_MIXED : slot);
}

/* The id of the stream that asked for the live span; 0: none, or it is closed. */
static inline uint64_t gm__arena_asked_on(const gm__arena *arena, const gm__span *span) {
  return span->bin < GM__LANE_IDLE ? arena->order.slots[span->bin].stream->id : 0;
}

/* The stream goes: its slot is free, and no mark has its bit. */
void gm__arena_forget_slot(gm__arena *arena, int slot);

/* The slot of the stream, with a lane; GM__ORDER_HOST for NULL, when all slots are taken, and without host memory. */
int gm__arena_slot(gm__arena *arena, gm_stream *stream);

/* The same for a free, see gm__order_free_slot. */
int gm__arena_free_slot(gm__arena *arena, gm_stream *stream);

/* What the span remembers, whether that is rare or not. */
gm__mark gm__arena_mark(const gm__arena *arena, uint32_t number);
/* Keep it, of a span that is not live. Without host memory the point is given up: who waits takes a later one. */
void gm__arena_set_mark(gm__arena *arena, uint32_t number, const gm__mark *mark);

/* The record of a span that has one, or is to have one (NULL without host memory); and its end, with its point. */
gm__rare *gm__arena_rare(const gm__arena *arena, uint32_t number);
gm__rare *gm__arena_make_rare(gm__arena *arena, uint32_t number);
void gm__arena_drop_rare(gm__arena *arena, uint32_t number);

/* For gm_block.memory: which segment it is in. */
static inline uint64_t gm__arena_memory(const gm__arena *arena, const gm__span *span) {
  return (uint64_t)(arena->number + 1) << 32 | span->home;
}

/* The live span that `block` names; 0: none: freed before, never given. The second looks at more than which it is. */
static inline uint32_t gm__arena_find_check(const gm__arena *arena, const gm_block *block) {
  const uint32_t number = block->node & (GM__SPANS_MAX - 1);
  if (number >= gm__spans_count(&arena->spans)) return 0;
  const gm__span *span = gm__arena_span(arena, number);
  return span->check == block->check && gm__span_is(span) == GM__SPAN_LIVE ? number : 0;
}

static inline uint32_t gm__arena_find(const gm__arena *arena, const gm_block *block) {
  const uint32_t number = gm__arena_find_check(arena, block);
  const gm__span *span = gm__arena_span(arena, number);
  const bool same = span->address == block->address && block->bytes == gm__arena_bytes(arena, span) &&
                    block->memory == gm__arena_memory(arena, span);
  return same ? number : 0;
}

static inline gm_block gm__arena_block(const gm__arena *arena, uint32_t number) {
  const gm__span *span = gm__arena_span(arena, number);
  return (gm_block){.address = span->address,
                    .bytes = gm__arena_bytes(arena, span),
                    .memory = gm__arena_memory(arena, span),
                    .node = arena->tag_of_blocks << GM__ARENA_SHIFT | number,
                    .check = span->check};
}

/* The span, of so many bytes, is the caller's from now on / is the caller's no more. */
static inline void gm__arena_count_out(gm__arena *arena, gm__span *span, uint64_t whole, uint64_t bytes, uint32_t tag) {
  span->check++;
  span->slack = (uint32_t)(whole - bytes);
  span->tag = tag;
  gm__tally_grow(&arena->tally.in_use, &arena->tally.peak_in_use, whole);
  gm__tally_grow(&arena->tally.requested, &arena->tally.peak_requested, bytes);
}

static inline void gm__arena_count_back(gm__arena *arena, gm__span *span, uint64_t whole) {
  const uint64_t bytes = whole - span->slack;
  span->check++;
  gm__tally_add(&arena->tally.in_use, 0 - whole);
  gm__tally_add(&arena->tally.requested, 0 - bytes);
  gm__tally_add(&arena->tally.frees, 1);
}

static inline void gm__arena_hand_out(gm__arena *arena, gm__span *span, uint64_t bytes, uint32_t tag, uint8_t lane) {
  span->state = (uint8_t)((span->state & GM__SPAN_RARE) | GM__SPAN_LIVE);
  span->bin = lane;
  gm__arena_count_out(arena, span, gm__arena_bytes(arena, span), bytes, tag);
}

static inline void gm__arena_take_back(gm__arena *arena, gm__span *span, uint32_t number, const gm_stream *stream) {
  if (__builtin_expect(arena->watched, 0)) gm__watch_leave(arena, number, stream);
  gm__arena_count_back(arena, span, gm__arena_bytes(arena, span));
}

#endif
