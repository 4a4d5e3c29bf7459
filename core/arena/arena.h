/* Arenas. An arena serves the requests of one thread, or those for a rare kind of memory. It has segments, their
 * chunks, and a stream cache for each stream that frees there. A pool's arenas live as long as the pool. */
#ifndef GM_CORE_ARENA_ARENA_H
#define GM_CORE_ARENA_ARENA_H

#include "core/algo/address_index.h"
#include "core/arena/arena_set.h"
#include "core/arena/segment.h"
#include "core/arena/stream_cache.h"
#include "core/arena/wishes.h"
#include "core/base/bias_lock.h"
#include "core/base/map.h"
#include "core/base/thread_here.h"
#include "core/order/order.h"
#include "core/track/ledger.h"

enum {
  GM__ARENA_STREAM_BITS = 6,
  GM__ARENA_STREAMS = 1 << GM__ARENA_STREAM_BITS, /* places of the table from a stream to its stream cache */
  GM__ARENA_ASK_AFTER = 64,                       /* frees between two looks at the streams, where there are several */
};

/* Written inside the arena's lock, read by any thread. Peaks: gm__stats_rearm, which alone writes before_*. */
typedef struct gm__arena_stats {
  _Atomic uint64_t in_use, requested, peak_in_use, peak_requested, before_in_use, before_requested;
  _Atomic uint64_t stream_hits, global_hits, misses, frees;
  _Atomic uint64_t free_chunk_hits;               /* those hits that came from a free chunk, not from a quick list */
  _Atomic uint64_t reclaimable;                   /* bytes that a trim could give back, as of the last look */
  _Atomic uint64_t hole, scattered, largest_hole; /* as of the last look (holes.h) */
} gm__arena_stats;

typedef struct gm__arena_stream {
  const gm_stream *stream; /* NULL: the host */
  gm__stream_cache *cache;
} gm__arena_stream;

struct gm__arena {
  gm__bias_lock lock; /* the arena lock: of all members up to mapped_pages */
  gm__arena_set *set;
  uint32_t number, tag_of_blocks; /* tag_of_blocks: the high bits of gm_block.number */
  uint32_t shift;                 /* a granule is 1 << shift bytes */
  uint32_t frees, ask_after; /* frees since the last look at the streams; how many frees may come between two looks */
  uint32_t quick_most;       /* in granules: larger chunks go into no quick list */
  uint32_t small_flushes;    /* flushes for small requests since their area grew */
  uint32_t small_most;       /* in granules: larger requests are of GM__AREA_LARGE. 0: all are */
  bool common;               /* it serves the requests of a thread; else those for a rare kind */
  bool mixes;    /* it knows one stream at most: that stream's free chunks and idle ones are joined at once */
  bool observed; /* observe.h is told of each block that is handed out or comes back */
  gm__chunks chunks;
  gm__lookup lookup;
  gm__arena_stream streams[GM__ARENA_STREAMS]; /* a cache: gm__arena_slot knows all */
  gm__stream_cache *caches[GM__STREAM_CACHES]; /* by slot; NULL: none was needed yet */
  gm__arena_stats stats;
  gm__ledger ledger;        /* open while the pool is tracked */
  gm__event_buffer *events; /* of the recording; NULL: the pool is not recorded */
  gm__order order;
  gm__map cold; /* from the number of a chunk to its gm__cold */
  gm__memory_kind kind;
  gm__segment *segments;       /* newest first */
  uint32_t unmapped;           /* the first unmapped chunk of its ranges (page_run.c); 0: none */
  uint32_t stranded;           /* the first chunk of its ranges that stays AWAY for now (page_run.c); 0: none */
  gm__segment **segment_table; /* by number, from 1 */
  uint32_t segment_capacity;
  uint64_t noted;        /* the part of stats.reclaimable that the device was told */
  gm__thread_life *life; /* of the home thread of its lock; NULL: there is none. REQUIRES: provider lock */
  gm__quotas *quotas;    /* counts its blocks; NULL: no tag has a quota */
  bool closed;           /* no request and no free takes the fast path */
  uint32_t events_below, quotas_below; /* these two know of chunks with lower numbers so far (observe.c) */
  uint64_t mapped_pages[GM__AREAS];    /* of its ranges. REQUIRES: pages lock, for this and the next */
  uint64_t ask_at;   /* the number of frees that it must reach before another arena asks it for idle pages again */
  gm__wishes wishes; /* of its thread's requests. REQUIRES: to be that thread */
};

/* A new arena of the set, with that number. NULL without host memory. REQUIRES: provider lock. */
gm__arena *gm__arena_new(gm__arena_set *set, const gm__memory_kind *kind, uint32_t number);

/* Ends it, with all that it holds. */
void gm__arena_release(gm__arena *arena, gm_close_mode mode);

/* Closes the fast path, for quotas or sleep: every request and free goes the long way. gm__arena_open_fast opens it,
 * unless quotas or the pool keep it closed. REQUIRES: arena lock. */
void gm__arena_close_fast(gm__arena *arena);
void gm__arena_open_fast(gm__arena *arena);

/* True when the chunk's owner has it. A guard may hold a freed block back: then it is live, but not out. REQUIRES:
 * arena lock. */
bool gm__arena_is_out(const gm__arena *arena, uint32_t number);

static inline void gm__arena_lock(gm__arena *arena) { gm__bias_lock_in(&arena->lock, gm__thread_self()); }
static inline void gm__arena_unlock(gm__arena *arena) { gm__bias_lock_out(&arena->lock); }

/* Leaves a lock that gm__bias_enter has entered. */
static inline void gm__arena_leave(gm__arena *arena) { gm__bias_leave(&arena->lock); }

/* True when the arena's memory comes in pages. The bytes of a page. */
static inline bool gm__arena_has_pages(const gm__arena *arena) {
  return arena->set->provider->pages.usable && arena->common;
}
static inline uint64_t gm__arena_page(const gm__arena *arena) { return arena->set->provider->pages.page_bytes; }

static inline uint64_t gm__arena_granule(const gm__arena *arena) { return UINT64_C(1) << arena->shift; }

static inline uint64_t gm__arena_bytes(const gm__arena *arena, const gm__chunk *chunk) {
  return (uint64_t)chunk->granules << arena->shift;
}

static inline gm__chunk *gm__arena_chunk(const gm__arena *arena, uint32_t number) {
  return gm__chunk_at(&arena->chunks, number);
}

/* The bytes that the owner of a live chunk asked for. */
static inline uint64_t gm__arena_requested(const gm__arena *arena, gm__chunk *chunk) {
  return gm__arena_bytes(arena, chunk) - chunk->slack;
}

/* Where a request of so many granules is served. */
static inline gm__area gm__arena_area(const gm__arena *arena, uint64_t granules) {
  return granules <= arena->small_most ? GM__AREA_SMALL : GM__AREA_LARGE;
}

static inline uint8_t gm__chunk_is(const gm__chunk *chunk) { return chunk->state & GM__CHUNK_STATE; }

/* Sets the state. GM__CHUNK_COLD stays. */
static inline void gm__chunk_become(gm__chunk *chunk, gm__chunk_state state) {
  chunk->state = (uint8_t)((chunk->state & GM__CHUNK_COLD) | state);
}

/* Adds without an atomic read-modify-write: there is one writer. */
static inline void gm__arena_stats_add(_Atomic uint64_t *counter, uint64_t n) {
  atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
}

static inline void gm__arena_stats_grow(_Atomic uint64_t *counter, _Atomic uint64_t *peak, uint64_t n) {
  const uint64_t now = atomic_load_explicit(counter, memory_order_relaxed) + n;
  atomic_store_explicit(counter, now, memory_order_relaxed);
  if (now > atomic_load_explicit(peak, memory_order_relaxed)) atomic_store_explicit(peak, now, memory_order_relaxed);
}

static inline size_t gm__arena_stream_place(const gm_stream *stream) {
  return (uint64_t)(uintptr_t)stream * UINT64_C(0x9e3779b97f4a7c15) >> (64 - GM__ARENA_STREAM_BITS);
}

/* The stream cache of a stream (NULL: of the host) where one look finds it. NULL: gm__arena_slot may know more, or a
 * quota book counts the blocks. */
static inline gm__stream_cache *gm__arena_cache(const gm__arena *arena, const gm_stream *stream) {
  const gm__arena_stream *known = &arena->streams[gm__arena_stream_place(stream)];
  if (__builtin_expect(known->stream == stream, 1)) return known->cache;
  return stream ? NULL : arena->caches[GM__STREAM_CACHE_IDLE];
}

/* A live chunk's `bin`: `asked` of the stream that asked for it. */
uint16_t gm__arena_request_cache(const gm__arena *arena, const gm_stream *stream);

/* The id of the stream that asked for the live chunk; 0: the host, or that stream is closed. */
uint64_t gm__arena_asked_on(const gm__arena *arena, const gm__chunk *chunk);

/* True when no live chunk could be taken for one that the next stream of the slot asked for. */
bool gm__arena_may_follow(const gm__arena *arena, int slot);

/* The stream of the slot has closed, and no free chunk waits for it: the slot becomes free. Live chunks that the stream
 * used may still say so, and that is over by then. REQUIRES: arena lock. */
void gm__arena_forget_slot(gm__arena *arena, int slot);

/* Makes the stream cache with that number unless it exists. False without host memory. REQUIRES: arena lock. */
bool gm__arena_make_cache(gm__arena *arena, int number);

/* Call this when the arena has got or lost a stream. REQUIRES: arena lock. */
void gm__arena_count_streams(gm__arena *arena);

/* The slot of the stream, with a stream cache. GM__ORDER_HOST for NULL, when all slots are taken, and without host
 * memory. REQUIRES: arena lock. */
int gm__arena_slot(gm__arena *arena, gm_stream *stream);

/* Like gm__arena_slot, for a free: see gm__order_free_slot. REQUIRES: arena lock. */
int gm__arena_free_slot(gm__arena *arena, gm_stream *stream);

/* The last use of a chunk, from its record or from its cold record. A chunk in no list names no stream that has done
 * its work, or has closed. REQUIRES: arena lock. */
gm__last_use gm__arena_last_use(const gm__arena *arena, uint32_t number);
/* Sets the last use of a chunk that is not live. Without host memory the point is given up, and whoever waits takes a
 * later one. REQUIRES: arena lock. */
void gm__arena_set_last_use(gm__arena *arena, uint32_t number, const gm__last_use *use);

/* The cold record of a chunk. gm__arena_cold: NULL if it has none. gm__arena_make_cold: made if it has none, NULL
 * without host memory. gm__arena_drop_cold: ends it, and its point. REQUIRES: arena lock. */
gm__cold *gm__arena_cold(const gm__arena *arena, uint32_t number);
gm__cold *gm__arena_make_cold(gm__arena *arena, uint32_t number);
void gm__arena_drop_cold(gm__arena *arena, uint32_t number);

/* gm_block.memory of a chunk: which segment it lies in. */
static inline uint64_t gm__arena_memory(const gm__arena *arena, const gm__chunk *chunk) {
  return (uint64_t)(arena->number + 1) << 32 | chunk->segment_index;
}

/* The live chunk that `block` names; 0: there is none, or it was freed. gm__arena_find also compares the block's other
 * members. REQUIRES: arena lock. */
static inline uint32_t gm__arena_find_check(const gm__arena *arena, const gm_block *block) {
  const uint32_t number = block->number & (GM__CHUNKS_MAX - 1);
  if (number >= gm__chunks_count(&arena->chunks)) return 0;
  const gm__chunk *chunk = gm__arena_chunk(arena, number);
  return chunk->check == block->check && gm__chunk_is(chunk) == GM__CHUNK_LIVE ? number : 0;
}

static inline uint32_t gm__arena_find(const gm__arena *arena, const gm_block *block) {
  const uint32_t number = gm__arena_find_check(arena, block);
  const gm__chunk *chunk = gm__arena_chunk(arena, number);
  const bool same = chunk->address == block->address && block->bytes == gm__arena_bytes(arena, chunk) &&
                    block->memory == gm__arena_memory(arena, chunk);
  return same ? number : 0;
}

static inline gm_block gm__arena_block(const gm__arena *arena, uint32_t number) {
  const gm__chunk *chunk = gm__arena_chunk(arena, number);
  return (gm_block){.address = chunk->address,
                    .bytes = gm__arena_bytes(arena, chunk),
                    .memory = gm__arena_memory(arena, chunk),
                    .number = arena->tag_of_blocks << GM__ARENA_SHIFT | number,
                    .check = chunk->check};
}

/* Counts that the chunk of `whole` bytes goes out to a caller who asked for `bytes`, or comes back. REQUIRES: arena
 * lock. */
static inline void gm__arena_count_out(gm__arena *arena, gm__chunk *chunk, uint64_t whole, uint64_t bytes,
                                       uint32_t tag) {
  chunk->check++;
  chunk->slack = (uint32_t)(whole - bytes);
  chunk->tag = tag;
  gm__arena_stats_grow(&arena->stats.in_use, &arena->stats.peak_in_use, whole);
  gm__arena_stats_grow(&arena->stats.requested, &arena->stats.peak_requested, bytes);
}

static inline void gm__arena_count_back(gm__arena *arena, gm__chunk *chunk, uint64_t whole) {
  const uint64_t bytes = whole - chunk->slack;
  chunk->check++;
  gm__arena_stats_add(&arena->stats.in_use, 0 - whole);
  gm__arena_stats_add(&arena->stats.requested, 0 - bytes);
  gm__arena_stats_add(&arena->stats.frees, 1);
}

static inline void gm__arena_hand_out(gm__arena *arena, gm__chunk *chunk, uint64_t bytes, uint32_t tag,
                                      uint16_t asked) {
  gm__chunk_become(chunk, GM__CHUNK_LIVE);
  chunk->bin = asked;
  gm__arena_count_out(arena, chunk, gm__arena_bytes(arena, chunk), bytes, tag);
}

#endif
