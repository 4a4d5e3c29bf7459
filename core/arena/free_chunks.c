#include "core/arena/free_chunks.h"

#include "core/algo/tlsf_search.h"
#include "core/arena/segment.h"
#include "core/arena/walk.h"
#include "core/base/saturate.h"

/* Invariants. The chunks of a segment tile it. A free chunk is in the stream cache of the streams that may still use
 * it: none, one, or several. Two neighbouring free chunks that wait for the same streams are joined whenever either of
 * them changes. One that waits for a point of the engine is joined once the point has passed. So a segment that nobody
 * uses ends as one free chunk.
 *
 * An idle free chunk and one that a stream uses are joined in two cases only. Either the arena knows no other stream,
 * or the pool would grow. Otherwise a free on one stream would take memory away from the others. */

/* Nearly every free runs this code, so no function is called on the way. */
#define FREE_CHUNK_INLINE static inline __attribute__((always_inline))

enum { FREE_CHUNK_LOOKS = 16 }; /* quick lists looked at, to find one that gives up a chunk */

static uint32_t free_chunk_granules(const gm__arena *arena, const gm__want *want) {
  return (uint32_t)(want->exact >> arena->shift);
}

static gm__tlsf *free_chunk_bins(const gm__arena *arena, uint32_t number) {
  const gm__chunk *chunk = gm__arena_chunk(arena, number);
  return gm__stream_cache_bins(arena->caches[chunk->cache], chunk);
}

/* ---- joining ---- */

/* Two free chunks are joined: the later free counts, and its point. When both were freed at one time, the clock does
 * not say which was later, so neither point will do. */
static void free_chunk_join_uses(gm__arena *arena, gm__last_use *use, gm__last_use *other) {
  if (use->streams == other->streams && use->freed_at == other->freed_at) gm__order_drop_point(&arena->order, use);
  const bool takes = use->streams == other->streams ? other->freed_at > use->freed_at : other->streams != 0;
  gm__order_drop_point(&arena->order, takes ? use : other);
  if (takes) *use = *other;
}

/* True while the chunk waits for a point of the engine, which tells of no other chunk. */
static bool free_chunk_has_given(const gm__last_use *use) { return use->given && use->has_point && use->streams; }

static bool free_chunk_can_join(const gm__arena *arena, uint32_t neighbour, const gm__last_use *use, bool mixes) {
  if (gm__chunk_is(gm__arena_chunk(arena, neighbour)) != GM__CHUNK_FREE) return false;
  const gm__last_use other = gm__arena_last_use(arena, neighbour);
  const uint64_t streams = other.streams;
  if (free_chunk_has_given(use) || free_chunk_has_given(&other)) return false;
  return streams == use->streams || (mixes && (!streams || !use->streams));
}

/* The neighbour leaves its list and ends. *use becomes the last use of both. */
static void free_chunk_swallow(gm__arena *arena, uint32_t neighbour, gm__last_use *use) {
  gm__last_use other = gm__arena_last_use(arena, neighbour);
  gm__tlsf_take(&arena->chunks, free_chunk_bins(arena, neighbour), neighbour);
  free_chunk_join_uses(arena, use, &other);
  gm__arena_drop_cold(arena, neighbour);
  gm__chunk_unlink(&arena->chunks, neighbour);
}

/* Joins neighbours on one side until none can be joined. `looks`: at most so many. */
static void free_chunk_join_left(gm__arena *arena, gm__chunk *chunk, gm__last_use *use, bool mixes, uint32_t *looks) {
  for (; *looks && free_chunk_can_join(arena, chunk->left, use, mixes); --*looks) {
    const gm__chunk *left = gm__arena_chunk(arena, chunk->left);
    chunk->address = left->address;
    chunk->granules += left->granules;
    free_chunk_swallow(arena, chunk->left, use);
  }
}

static void free_chunk_join_right(gm__arena *arena, gm__chunk *chunk, gm__last_use *use, bool mixes, uint32_t *looks) {
  for (; *looks && free_chunk_can_join(arena, chunk->right, use, mixes); --*looks) {
    chunk->granules += gm__arena_chunk(arena, chunk->right)->granules;
    free_chunk_swallow(arena, chunk->right, use);
  }
}

uint32_t gm__free_chunk_put(gm__arena *arena, uint32_t number, const gm__last_use *use, bool mixes) {
  gm__chunk *chunk = gm__arena_chunk(arena, number);
  gm__last_use joined = *use;
  uint32_t looks = GM__ARENA_PIECE;
  joined.streams &= ~arena->order.ended;
  free_chunk_join_left(arena, chunk, &joined, mixes, &looks);
  free_chunk_join_right(arena, chunk, &joined, mixes, &looks);
  gm__arena_set_last_use(arena, number, &joined);
  gm__chunk_become(chunk, GM__CHUNK_FREE);
  gm__tlsf_put(&arena->chunks, free_chunk_bins(arena, number), number);
  return GM__ARENA_PIECE - looks;
}

/* True when the neighbour may be joined at once with a free chunk of that stream cache. */
static inline bool free_chunk_joins(const gm__arena *arena, const gm__chunk *neighbour, const gm__stream_cache *cache) {
  if (neighbour->part == cache->free_part) return true; /* one with a cold record has another `part` */
  const bool idle = gm__chunk_is_idle(neighbour);
  return idle && arena->mixes && cache->number != GM__STREAM_CACHE_MIXED;
}

/* A free chunk gets another size and comes into the stream cache. */
FREE_CHUNK_INLINE void free_chunk_move(gm__arena *arena, uint32_t number, gm__stream_cache *cache, uint32_t granules) {
  gm__chunk *chunk = gm__arena_chunk(arena, number);
  if (chunk->cache == cache->number) {
    gm__tlsf_resize(&arena->chunks, gm__stream_cache_bins(cache, chunk), number, granules);
    return;
  }
  gm__tlsf_take(&arena->chunks, free_chunk_bins(arena, number), number);
  chunk->cache = cache->number;
  chunk->granules = granules;
  gm__tlsf_put(&arena->chunks, gm__stream_cache_bins(cache, chunk), number);
}

/* See gm__free_chunk_free. */
FREE_CHUNK_INLINE void free_chunk_free(gm__arena *arena, uint32_t number, gm__stream_cache *cache) {
  gm__chunks *chunks = &arena->chunks;
  gm__chunk *chunk = gm__chunk_at(chunks, number);
  const uint32_t left = chunk->left, right = chunk->right;
  gm__chunk *before = gm__chunk_at(chunks, left), *after = gm__chunk_at(chunks, right);
  const uint64_t seq = chunk->seq;
  uint32_t granules = chunk->granules;
  if (free_chunk_joins(arena, before, cache)) {
    granules += before->granules;
    if (before->seq < seq) before->seq = seq;
    gm__chunk_unlink(chunks, number);
    if (free_chunk_joins(arena, after, cache)) {
      granules += after->granules;
      if (before->seq < after->seq) before->seq = after->seq;
      gm__tlsf_take(chunks, free_chunk_bins(arena, right), right);
      gm__chunk_unlink(chunks, right);
    }
    free_chunk_move(arena, left, cache, granules);
  } else if (free_chunk_joins(arena, after, cache)) {
    granules += after->granules;
    if (after->seq < seq) after->seq = seq;
    after->address = chunk->address;
    gm__chunk_unlink(chunks, number);
    free_chunk_move(arena, right, cache, granules);
  } else {
    chunk->state = GM__CHUNK_FREE;
    gm__tlsf_put(chunks, gm__stream_cache_bins(cache, chunk), number);
  }
}

void gm__free_chunk_free(gm__arena *arena, uint32_t number, gm__stream_cache *cache) {
  free_chunk_free(arena, number, cache);
}

void gm__free_chunk_flush_one(gm__arena *arena, gm__stream_cache *cache, gm__quick *quick) {
  const uint32_t number = gm__quick_pop(cache, quick, &arena->chunks);
  gm__arena_chunk(arena, number)->cache = cache->number;
  gm__lookup_remove(&arena->lookup, &arena->chunks, number);
  gm__free_chunk_free(arena, number, cache);
}

/* The quick lists are full: one of the next few behind the last loser gives up a chunk, but not the list `own`. */
static void free_chunk_evict_one(gm__arena *arena, gm__stream_cache *cache, const gm__quick *own) {
  for (int i = 0; i < FREE_CHUNK_LOOKS; i++) {
    gm__quick *quick = &cache->quick[cache->hand++ % GM__QUICK_LISTS];
    if (!quick->head || quick == own) continue;
    gm__free_chunk_flush_one(arena, cache, quick);
    return;
  }
}

/* A quick list that nobody asks makes room for the new chunk, one for one, so that no free pays for many. That is the
 * list of another size in the same place, or any list when the stream cache is full. */
static void free_chunk_make_room(gm__arena *arena, gm__stream_cache *cache, uint32_t granules, uint32_t most) {
  gm__quick *quick = gm__quick_of(cache, granules);
  if (quick->head && quick->granules != granules) {
    gm__free_chunk_flush_one(arena, cache, quick);
  } else if (most && cache->quick_count >= most) {
    free_chunk_evict_one(arena, cache, quick);
  }
}

void gm__free_chunk_keep(gm__arena *arena, uint32_t number, gm__stream_cache *cache) {
  gm__chunk *chunk = gm__arena_chunk(arena, number);
  const uint32_t most = gm__quick_blocks(&arena->set->quick);
  arena->frees++;
  if (chunk->granules <= arena->quick_most) {
    free_chunk_make_room(arena, cache, chunk->granules, most);
    if (gm__quick_put(cache, chunk, number, chunk->granules, most)) return;
  }
  chunk->cache = cache->number;
  gm__lookup_remove(&arena->lookup, &arena->chunks, number);
  free_chunk_free(arena, number, cache);
}

/* ---- searching ---- */

typedef struct free_chunk_search {
  const gm__want *want;
  gm__area area;
  int slot;
  gm__order_verdict worst;
  uint32_t best;
  gm__order_verdict verdict;
} free_chunk_search;

/* A range has pages of many memories, and so no offset. A whole segment is one block. */
static bool free_chunk_suits(const gm__tlsf_wish *wish, const gm__chunk *chunk) {
  const gm__arena *arena = wish->user;
  const gm__segment *segment = arena->segment_table[chunk->segment_index];
  if (arena->set->whole) return chunk->granules == wish->granules;
  return segment->range || (segment->allocation->address & (wish->align - 1)) == 0;
}

/* The wish of a search for the request: it wants, too, that an aligned address is at an aligned offset in the driver's
 * memory. */
static gm__tlsf_wish free_chunk_wish(const gm__arena *arena, const gm__want *want) {
  const uint64_t granule = gm__arena_granule(arena), align = gm__max(want->align, granule);
  return (gm__tlsf_wish){.granules = (uint32_t)(want->exact >> arena->shift),
                         .align = align,
                         .granule = granule,
                         .suits = align > granule || arena->set->whole ? free_chunk_suits : NULL,
                         .user = arena};
}

bool gm__free_chunk_fits(const gm__arena *arena, const gm__want *want, uint32_t free_chunk) {
  if (want->exact >> arena->shift > UINT32_MAX) return false; /* no chunk is that large */
  const gm__tlsf_wish wish = free_chunk_wish(arena, want);
  return gm__tlsf_serves(&wish, gm__arena_chunk(arena, free_chunk));
}

/* Looks into a stream cache for a better free chunk than the best so far. */
static void free_chunk_look(const gm__arena *arena, free_chunk_search *search, int number) {
  const gm__stream_cache *cache = arena->caches[number];
  if (!cache || !cache->tlsf[search->area].top) return;
  const gm__tlsf_wish wish = free_chunk_wish(arena, search->want);
  const uint32_t found = gm__tlsf_search(&arena->chunks, &cache->tlsf[search->area], &wish);
  if (!found) return;
  const gm__last_use use = gm__arena_last_use(arena, found);
  const gm__order_verdict verdict = gm__order_judge(&arena->order, &use, search->slot, search->want->insert);
  if (verdict > search->worst || (search->best && search->verdict < verdict)) return;
  const bool larger =
      search->best && gm__arena_chunk(arena, search->best)->granules <= gm__arena_chunk(arena, found)->granules;
  if (search->best && search->verdict == verdict && larger) return;
  search->best = found;
  search->verdict = verdict;
}

/* The streams that have free chunks of the area. */
static uint64_t free_chunk_streams(const gm__arena *arena, gm__area area) {
  uint64_t streams = 0;
  if (arena->caches[GM__STREAM_CACHE_MIXED]->tlsf[area].top) return arena->order.used;
  for (int i = 0; i < GM__STREAM_CACHE_IDLE; i++) {
    if (arena->caches[i] && arena->caches[i]->tlsf[area].top) streams |= UINT64_C(1) << i;
  }
  return streams;
}

uint32_t gm__free_chunks_find(gm__arena *arena, const gm__want *want, gm__area area, int slot, gm__order_verdict worst,
                              uint64_t *out_pending, gm__order_verdict *out_verdict) {
  free_chunk_search search = {.want = want, .area = area, .slot = slot, .worst = worst};
  if (slot != GM__ORDER_HOST) free_chunk_look(arena, &search, slot);
  free_chunk_look(arena, &search, GM__STREAM_CACHE_IDLE);
  if (!search.best && worst > GM__ORDER_READY) free_chunk_look(arena, &search, GM__STREAM_CACHE_MIXED);
  const bool anywhere = !search.best && worst >= GM__ORDER_OTHERS_WAIT;
  for (int i = 0; anywhere && i < GM__STREAM_CACHE_IDLE; i++) {
    if (i != slot) free_chunk_look(arena, &search, i);
  }
  *out_verdict = search.verdict;
  if (!search.best) *out_pending |= free_chunk_streams(arena, area);
  return search.best;
}

/* ---- carving ---- */

/* Cuts the first granules off a free chunk. They are AWAY, and have the last use of the whole without its point. */
static uint32_t free_chunk_split(gm__arena *arena, uint32_t free_chunk, uint32_t granules) {
  gm__last_use use = gm__arena_last_use(arena, free_chunk);
  use.has_point = false;
  const uint32_t front = gm__free_chunk_cut(arena, free_chunk_bins(arena, free_chunk), free_chunk, granules);
  if (front == free_chunk) {
    gm__chunk_become(gm__arena_chunk(arena, free_chunk), GM__CHUNK_AWAY);
  } else {
    gm__arena_set_last_use(arena, front, &use);
  }
  return front;
}

uint32_t gm__free_chunk_carve(gm__arena *arena, const gm__want *want, uint32_t free_chunk) {
  const uint64_t align = gm__max(want->align, gm__arena_granule(arena));
  const uint64_t pad = gm__target_pad(want, gm__arena_chunk(arena, free_chunk), align);
  if (pad) { /* the bytes before the first one become a free chunk of their own */
    const uint32_t front = free_chunk_split(arena, free_chunk, (uint32_t)(pad >> arena->shift));
    gm__chunk_become(gm__arena_chunk(arena, front), GM__CHUNK_FREE);
    gm__tlsf_put(&arena->chunks, free_chunk_bins(arena, front), front);
  }
  return free_chunk_split(arena, free_chunk, free_chunk_granules(arena, want));
}
