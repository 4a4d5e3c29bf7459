#include "core/arena/segment.h"

#include "core/arena/free_chunks.h"
#include "core/arena/page_run.h"
#include "core/base/alloc.h"
#include "core/base/saturate.h"

/* Invariants. A segment begins with an edge; behind it the segment's chunks tile its memory. A chunk knows its segment
 * by the number in the arena (`segment_index`). That number serves again when the segment has gone. */

/* The first number of the area from 1 on: its remainder is the area. */
static uint32_t segment_first(gm__area area) { return area ? area : GM__AREAS; }

/* A number for a segment of the area; 0 without host memory. */
static uint32_t segment_number(gm__arena *arena, gm__area area) {
  uint32_t number = segment_first(area);
  while (number < arena->segment_capacity && arena->segment_table[number]) number += GM__AREAS;
  if (number < arena->segment_capacity) return number;
  const uint32_t capacity = arena->segment_capacity ? arena->segment_capacity * 2 : 16;
  const size_t size = sizeof *arena->segment_table;
  if (!gm__grow(arena->chunks.services, &arena->segment_table, arena->segment_capacity * size, capacity * size))
    return 0;
  arena->segment_capacity = capacity;
  return number;
}

static void segment_link(gm__arena *arena, gm__segment *segment) {
  segment->arena = arena;
  segment->prev = NULL;
  segment->next = arena->segments;
  if (segment->next) segment->next->prev = segment;
  arena->segments = segment;
  arena->segment_table[segment->segment_index] = segment;
}

bool gm__segment_open(gm__arena *arena, gm__segment *segment) {
  if (!gm__chunks_reserve(&arena->chunks, 2) || !(segment->segment_index = segment_number(arena, segment->area)))
    return false;
  segment_link(arena, segment);
  if (segment->allocation->memory.host) segment->mapped = true;
  segment->edge = gm__chunks_pop(&arena->chunks);
  const uint32_t free_chunk = gm__chunks_pop(&arena->chunks);
  gm__chunk *edge = gm__arena_chunk(arena, segment->edge), *chunk = gm__arena_chunk(arena, free_chunk);
  edge->state = GM__CHUNK_EDGE;
  edge->granules = 0;
  edge->left = 0;
  chunk->address = segment->allocation->address;
  chunk->granules = (uint32_t)(segment->allocation->bytes >> arena->shift);
  chunk->seq = segment->freed_at;
  chunk->segment_index = segment->segment_index;
  chunk->cache = GM__STREAM_CACHE_IDLE;
  gm__chunk_insert(&arena->chunks, segment->edge, free_chunk, 0);
  if (segment->range) {
    gm__page_run_put_unmapped(arena, free_chunk);
  } else {
    gm__free_chunk_free(arena, free_chunk, arena->caches[GM__STREAM_CACHE_IDLE]);
  }
  return true;
}

gm__segment *gm__segment_of(const gm__arena *arena, uint32_t number) {
  return arena->segment_table[gm__arena_chunk(arena, number)->segment_index];
}

bool gm__segment_is_zeroed(const gm__segment *segment) {
  if (!segment->range) return segment->zeroed;
  return atomic_load_explicit(&segment->range->zeroed, memory_order_relaxed);
}

bool gm__segment_is_idle(const gm__arena *arena, const gm__segment *segment) {
  const gm__chunk *first = gm__arena_chunk(arena, gm__arena_chunk(arena, segment->edge)->right);
  return !segment->range && first->state == GM__CHUNK_FREE && first->cache == GM__STREAM_CACHE_IDLE &&
         first->right == 0;
}

bool gm__segment_is_idle_since(const gm__arena *arena, const gm__segment *segment, uint64_t freed_by) {
  return gm__segment_is_idle(arena, segment) &&
         gm__freed_by(gm__arena_chunk(arena, gm__arena_chunk(arena, segment->edge)->right)->seq, freed_by);
}

void gm__segment_close(gm__arena *arena, gm__segment *segment) {
  const uint32_t free_chunk = gm__arena_chunk(arena, segment->edge)->right;
  gm__tlsf_take(&arena->chunks, &arena->caches[GM__STREAM_CACHE_IDLE]->tlsf[segment->area], free_chunk);
  segment->freed_at = gm__arena_chunk(arena, free_chunk)->seq;
  gm__chunks_push(&arena->chunks, free_chunk);
  gm__chunks_push(&arena->chunks, segment->edge);
  arena->segment_table[segment->segment_index] = NULL;
  if (segment->next) segment->next->prev = segment->prev;
  if (segment->prev) {
    segment->prev->next = segment->next;
  } else {
    arena->segments = segment->next;
  }
}
