/* A stream cache: the free memory of an arena that one stream freed last (or the host, or several streams). It has free
 * chunks in bins, and in front of them quick lists of exact sizes. REQUIRES: arena lock, for all of it. */
#ifndef GM_CORE_ARENA_STREAM_CACHE_H
#define GM_CORE_ARENA_STREAM_CACHE_H

#include "core/arena/sweep.h"
#include "core/order/order.h"

enum {
  GM__STREAM_CACHE_BITS = 7, /* of gm__stream_cache.asked: the number. The bits above count the streams of the place */
  GM__STREAM_CACHE_IDLE = GM__ORDER_SLOTS, /* no stream is known to use it; lower numbers: that of the slot's stream */
  GM__STREAM_CACHE_MIXED,                  /* several streams may use it */
  GM__STREAM_CACHES,
  GM__QUICK_BITS = 9,
  GM__QUICK_LISTS = 1 << GM__QUICK_BITS
};

/* Where memory lies. Where memory comes in pages, small blocks have pages of their own: one of them that lives long
 * then pins no large handle. The number of a segment tells its area. */
typedef enum gm__area { GM__AREA_LARGE, GM__AREA_SMALL, GM__AREAS } gm__area;

static inline gm__area gm__area_of(const gm__chunk *chunk) { return (gm__area)(chunk->segment_index % GM__AREAS); }

/* Chunks of one size, newest first, linked by `next`. An empty list (`head` 0) may take any size. */
typedef struct gm__quick {
  uint32_t granules, head;
} gm__quick;

typedef struct gm__stream_cache {
  gm__tlsf tlsf[GM__AREAS];
  uint8_t number;
  bool ordered; /* the stream runs in order: it may use at once what it freed */
  uint32_t quick_count;
  uint32_t hand; /* the list that lost a chunk last, when all were full */
  /* Values of gm__chunk.role: of the stream's live chunks from here, of those from the idle stream cache, and of chunks
   * in quick lists. Then values of gm__chunk.part: of those live chunks, and of the free ones. With several streams the
   * last is 0, because not all free chunks wait for the same ones. */
  uint32_t live_role, idle_role, quick_role;
  uint16_t live_part, free_part;
  uint16_t asked; /* the value of gm__chunk.bin of live chunks that the stream asked for; each new stream has another */
  _Atomic uint64_t *hits; /* counts the requests of the stream that this stream cache served */
  uint64_t *last_free;    /* where the order keeps the time of the stream's last free */
  uint64_t settled;       /* how far the stream was when its free chunks were settled last */
  gm__quick quick[GM__QUICK_LISTS];
  gm__sweep sweep;
} gm__stream_cache;

/* The bins of the chunk when it is free. */
static inline gm__tlsf *gm__stream_cache_bins(gm__stream_cache *cache, const gm__chunk *chunk) {
  return &cache->tlsf[gm__area_of(chunk)];
}

static inline bool gm__stream_cache_is_empty(const gm__stream_cache *cache) {
  return (cache->tlsf[GM__AREA_LARGE].top | cache->tlsf[GM__AREA_SMALL].top) == 0;
}

static inline uint16_t gm__stream_cache_part(uint8_t cache, gm__chunk_state state) {
  const gm__chunk chunk = {.cache = cache, .state = (uint8_t)state};
  return chunk.part;
}

/* The number of the stream cache whose stream asked for a live chunk with that `bin`. */
static inline uint32_t gm__stream_cache_of(uint16_t asked) { return asked & ((1u << GM__STREAM_CACHE_BITS) - 1); }

/* The role of a live chunk. `asked`: of the stream that asked for it. */
static inline uint32_t gm__stream_cache_role(uint16_t asked, uint8_t cache, gm__chunk_state state) {
  const gm__chunk chunk = {.bin = asked, .cache = cache, .state = (uint8_t)state};
  return chunk.role;
}

/* True for a live chunk without a cold record that only the stream of this stream cache may still use. */
static inline bool gm__stream_cache_owns(const gm__stream_cache *cache, const gm__chunk *chunk) {
  const bool idle = chunk->part == gm__stream_cache_part(GM__STREAM_CACHE_IDLE, GM__CHUNK_LIVE);
  return (chunk->part == cache->live_part) | idle; /* one branch, because processors predict it badly */
}

/* The product also spreads sizes that are multiples of a large power of two. */
static inline gm__quick *gm__quick_of(gm__stream_cache *cache, uint32_t granules) {
  return &cache->quick[granules * UINT32_C(0x9e3779b1) >> (32 - GM__QUICK_BITS)];
}

static inline bool gm__quick_has(const gm__quick *quick, uint64_t granules) {
  return quick->granules == granules && quick->head;
}

/* Takes the newest chunk of a list that is not empty. */
static inline uint32_t gm__quick_pop(gm__stream_cache *cache, gm__quick *quick, const gm__chunks *chunks) {
  const uint32_t number = quick->head;
  quick->head = gm__chunk_at(chunks, number)->next;
  cache->quick_count--;
  return number;
}

/* Takes a chunk of that size (> 0); 0: there is none. */
static inline uint32_t gm__quick_take(gm__stream_cache *cache, const gm__chunks *chunks, uint64_t granules) {
  gm__quick *quick = gm__quick_of(cache, (uint32_t)granules);
  return gm__quick_has(quick, granules) ? gm__quick_pop(cache, quick, chunks) : 0;
}

/* Puts the chunk into its list. False: the list has another size, or the lists have `most` chunks. */
static inline bool gm__quick_put(gm__stream_cache *cache, gm__chunk *chunk, uint32_t number, uint32_t granules,
                                 uint32_t most) {
  gm__quick *quick = gm__quick_of(cache, granules);
  const uint32_t head = quick->head;
  const bool own = !head | (quick->granules == granules); /* one branch, because processors predict it badly */
  if (cache->quick_count >= most || !own) return false;
  chunk->role = cache->quick_role;
  chunk->next = head;
  quick->granules = granules;
  quick->head = number;
  cache->quick_count++;
  return true;
}

#endif
