#include "core/arena/page_run.h"

#include "core/arena/free_chunks.h"
#include "core/arena/grow.h"
#include "core/base/saturate.h"

/* Invariants. In a range of an arena free chunks, blocks and unmapped chunks follow each other. An unmapped chunk is
 * whole pages, none of them mapped. Everything else is mapped. Unmapped chunks are few, and linked by `prev` and
 * `next`, so that a page run is found without a look at all live chunks. Each page run has an unmapped chunk:
 * neighbouring free chunks were joined before. */

static uint64_t page_run_bytes(const gm__arena *arena, uint32_t number) {
  return gm__arena_bytes(arena, gm__arena_chunk(arena, number));
}

/* ---- chunks of a range ---- */

static void page_run_link_unmapped(gm__arena *arena, uint32_t number) {
  gm__chunk *chunk = gm__arena_chunk(arena, number);
  chunk->state = GM__CHUNK_UNMAPPED;
  chunk->prev = 0;
  chunk->next = arena->unmapped;
  if (chunk->next) gm__arena_chunk(arena, chunk->next)->prev = number;
  arena->unmapped = number;
}

static void page_run_unlink_unmapped(gm__arena *arena, const gm__chunk *chunk) {
  if (chunk->next) gm__arena_chunk(arena, chunk->next)->prev = chunk->prev;
  if (chunk->prev) {
    gm__arena_chunk(arena, chunk->prev)->next = chunk->next;
  } else {
    arena->unmapped = chunk->next;
  }
}

void gm__page_run_put_unmapped(gm__arena *arena, uint32_t number) {
  gm__chunk *chunk = gm__arena_chunk(arena, number), *left = gm__arena_chunk(arena, chunk->left);
  const gm__chunk *right = gm__arena_chunk(arena, chunk->right);
  if (right->state == GM__CHUNK_UNMAPPED) {
    chunk->granules += right->granules;
    page_run_unlink_unmapped(arena, right);
    gm__chunk_unlink(&arena->chunks, chunk->right);
  }
  if (left->state == GM__CHUNK_UNMAPPED) {
    left->granules += chunk->granules;
    gm__chunk_unlink(&arena->chunks, number);
  } else {
    page_run_link_unmapped(arena, number);
  }
}

/* The first bytes of a chunk become a chunk of their own, in the same state. One chunk was reserved. */
static uint32_t page_run_split(gm__arena *arena, uint32_t number, uint64_t bytes) {
  const uint32_t front = gm__chunks_pop(&arena->chunks);
  gm__chunk *chunk = gm__arena_chunk(arena, number), *part = gm__arena_chunk(arena, front);
  const uint32_t check = part->check;
  *part = *chunk;
  part->check = check;
  part->granules = (uint32_t)(bytes >> arena->shift);
  gm__chunk_insert(&arena->chunks, chunk->left, front, number);
  chunk->address += bytes;
  chunk->granules -= part->granules;
  return front;
}

/* The state of the memory behind a page. */
typedef enum page_run_page_state { PAGE_RUN_NOTHING, PAGE_RUN_MAPPED, PAGE_RUN_SHUT } page_run_page_state;

static page_run_page_state page_run_state(const gm__arena *arena, const gm__va_range *range, uint64_t page) {
  if (!range->handle_of[page]) return PAGE_RUN_NOTHING;
  return gm__va_range_is_shut(arena->set->provider, range, page) ? PAGE_RUN_SHUT : PAGE_RUN_MAPPED;
}

/* The bytes at the begin of the chunk whose pages are in one state. */
static uint64_t page_run_alike(const gm__arena *arena, const gm__va_range *range, uint32_t number,
                               page_run_page_state *out_state) {
  const gm__chunk *chunk = gm__arena_chunk(arena, number);
  const uint64_t page = gm__arena_page(arena), begin = chunk->address - range->address;
  const uint64_t end = begin + gm__arena_bytes(arena, chunk);
  uint64_t at = begin / page;
  *out_state = page_run_state(arena, range, at);
  while (at * page < end && page_run_state(arena, range, at) == *out_state) at++;
  return gm__min(at * page, end) - begin;
}

static void page_run_strand(gm__arena *arena, uint32_t number) {
  gm__arena_chunk(arena, number)->next = arena->stranded;
  arena->stranded = number;
}

/* The chunk may have been away since its stream closed. */
static void page_run_free(gm__arena *arena, uint32_t number) {
  gm__chunk *chunk = gm__arena_chunk(arena, number);
  if (!gm__arena_last_use(arena, number).streams) chunk->cache = GM__STREAM_CACHE_IDLE;
  gm__free_chunk_free(arena, number, arena->caches[chunk->cache]);
}

void gm__page_run_return(gm__arena *arena, const gm__va_range *range, uint32_t number) {
  for (uint32_t part = 0; part != number;) {
    page_run_page_state state;
    const uint64_t alike = page_run_alike(arena, range, number, &state);
    part = number;
    if (alike < page_run_bytes(arena, number)) {
      if (!gm__chunks_reserve(&arena->chunks, 1)) {
        page_run_strand(arena, number);
        return;
      }
      part = page_run_split(arena, number, alike);
    }
    switch (state) {
      case PAGE_RUN_NOTHING: gm__page_run_put_unmapped(arena, part); break;
      case PAGE_RUN_MAPPED: page_run_free(arena, part); break;
      case PAGE_RUN_SHUT: page_run_strand(arena, part); break;
    }
  }
}

/* ---- page runs ---- */

/* True for what can be part of a page run for the slot. That is an unmapped chunk, or a free chunk that the slot's
 * stream may use at once. */
static bool page_run_counts(const gm__arena *arena, uint32_t number, int slot) {
  const gm__chunk *chunk = gm__arena_chunk(arena, number);
  if (chunk->state == GM__CHUNK_UNMAPPED) return true;
  if (chunk->state != GM__CHUNK_FREE) return false;
  return chunk->cache == GM__STREAM_CACHE_IDLE || (chunk->cache == slot && arena->caches[slot]->ordered);
}

/* Leaves out what is not needed of the unmapped chunks at both ends. False: it does not need its first chunk. */
static bool page_run_shrink(const gm__arena *arena, gm__page_run *run, uint64_t need) {
  const uint64_t page = gm__arena_page(arena);
  uint64_t excess = (run->bytes - need) / page * page;
  if (gm__arena_chunk(arena, run->last)->state == GM__CHUNK_UNMAPPED) {
    run->drop = gm__min(excess, page_run_bytes(arena, run->last));
    excess -= run->drop;
  }
  if (run->first != run->last && gm__arena_chunk(arena, run->first)->state == GM__CHUNK_UNMAPPED) {
    run->skip = gm__min(excess, page_run_bytes(arena, run->first));
    if (run->skip == page_run_bytes(arena, run->first)) return false;
  }
  run->unmapped -= run->skip + run->drop;
  run->bytes -= run->skip + run->drop;
  return true;
}

/* The smallest page run that begins with the chunk. False: there is none. */
static bool page_run_at(const gm__arena *arena, uint32_t first, int slot, uint64_t need, gm__page_run *out) {
  *out = (gm__page_run){.segment = arena->segment_table[gm__arena_chunk(arena, first)->segment_index], .first = first};
  for (uint32_t at = first; at && page_run_counts(arena, at, slot); at = gm__arena_chunk(arena, at)->right) {
    const uint64_t bytes = page_run_bytes(arena, at);
    out->bytes += bytes;
    if (gm__arena_chunk(arena, at)->state == GM__CHUNK_UNMAPPED) out->unmapped += bytes;
    out->last = at;
    if (out->bytes >= need) return page_run_shrink(arena, out, need);
  }
  return false;
}

/* The better page run has fewer bytes to map, then it is smaller, then it comes first by address. */
static bool page_run_is_better(const gm__arena *arena, const gm__page_run *one, const gm__page_run *other) {
  if (!other->segment) return true;
  if (one->unmapped != other->unmapped) return one->unmapped < other->unmapped;
  if (one->bytes != other->bytes) return one->bytes < other->bytes;
  return gm__arena_chunk(arena, one->first)->address < gm__arena_chunk(arena, other->first)->address;
}

/* The first of the neighbours that can be in a page run with the unmapped chunk. 0: one of them is an unmapped chunk
 * before this one. */
static uint32_t page_run_begin(const gm__arena *arena, uint32_t unmapped, int slot) {
  uint32_t first = unmapped;
  for (uint32_t at = gm__arena_chunk(arena, unmapped)->left; page_run_counts(arena, at, slot);
       at = gm__arena_chunk(arena, at)->left) {
    if (gm__arena_chunk(arena, at)->state == GM__CHUNK_UNMAPPED) return 0;
    first = at;
  }
  return first;
}

static bool page_run_find(const gm__arena *arena, gm__area area, int slot, uint64_t need, gm__page_run *out) {
  *out = (gm__page_run){.segment = NULL};
  for (uint32_t unmapped = arena->unmapped; unmapped; unmapped = gm__arena_chunk(arena, unmapped)->next) {
    if (gm__area_of(gm__arena_chunk(arena, unmapped)) != area) continue;
    uint32_t at = page_run_begin(arena, unmapped, slot);
    for (gm__page_run run; at && page_run_counts(arena, at, slot); at = gm__arena_chunk(arena, at)->right) {
      if (page_run_at(arena, at, slot, need, &run)) {
        if (page_run_is_better(arena, &run, out)) *out = run;
      } else if (run.bytes < need) {
        break; /* there is not enough from any later chunk either */
      }
    }
  }
  return out->segment != NULL;
}

/* At the end of a range as much may be mapped as the pool grows by. */
static void page_run_extend(const gm__arena *arena, gm__page_run *run) {
  if (gm__arena_chunk(arena, run->last)->right || run->drop == 0) return;
  const uint64_t wish = gm__growth_pages(arena, run->segment->area, run->unmapped);
  const uint64_t more = gm__sub_sat(wish, run->unmapped) / gm__arena_page(arena) * gm__arena_page(arena);
  run->extra = gm__min(more, run->drop);
  run->drop -= run->extra;
  run->bytes += run->extra;
}

/* The unmapped chunks at the ends of the page run stay unmapped as far as it does not need them. */
static void page_run_leave(gm__arena *arena, gm__page_run *run) {
  if (run->drop) {
    const uint32_t last = page_run_split(arena, run->last, page_run_bytes(arena, run->last) - run->drop);
    gm__arena_chunk(arena, last)->state = GM__CHUNK_AWAY;
    if (run->first == run->last) run->first = last;
    run->last = last;
  }
  if (run->skip) page_run_link_unmapped(arena, page_run_split(arena, run->first, run->skip));
}

/* A chunk of the page run leaves its list and is joined with the first one. Returns its right neighbour. */
static uint32_t page_run_join(gm__arena *arena, uint32_t number, uint32_t first) {
  gm__chunk *chunk = gm__arena_chunk(arena, first);
  const gm__chunk *part = gm__arena_chunk(arena, number);
  const uint32_t right = part->right;
  if (part->state == GM__CHUNK_UNMAPPED) page_run_unlink_unmapped(arena, part);
  if (part->state == GM__CHUNK_FREE) {
    gm__tlsf_take(&arena->chunks, gm__stream_cache_bins(arena->caches[part->cache], part), number);
    if (part->cache != GM__STREAM_CACHE_IDLE) chunk->cache = part->cache;
    if (part->seq > chunk->seq) chunk->seq = part->seq;
  }
  if (number == first) return right;
  chunk->granules += part->granules;
  gm__chunk_unlink(&arena->chunks, number);
  return right;
}

/* The chunks of the page run become one that is AWAY. */
static uint32_t page_run_seize(gm__arena *arena, gm__page_run *run) {
  page_run_leave(arena, run);
  const uint32_t first = run->first, last = run->last;
  gm__chunk *chunk = gm__arena_chunk(arena, first);
  if (chunk->state != GM__CHUNK_FREE) chunk->cache = GM__STREAM_CACHE_IDLE;
  for (uint32_t at = first, done = 0; done != last;) {
    done = at;
    at = page_run_join(arena, at, first);
  }
  chunk->state = GM__CHUNK_AWAY;
  return first;
}

/* Computes the pages that the chunk touches. */
static void page_run_touch(const gm__arena *arena, gm__page_run *run, const gm__chunk *chunk) {
  const uint64_t page = gm__arena_page(arena), begin = chunk->address - run->segment->range->address;
  run->from = (uint32_t)(begin / page);
  run->reach = (uint32_t)((begin + gm__arena_bytes(arena, chunk) + page - 1) / page);
  run->to = run->reach - (uint32_t)(run->extra / page);
}

uint32_t gm__page_run_open(gm__arena *arena, gm__area area, int slot, uint64_t need, gm__page_run *out) {
  if (!page_run_find(arena, area, slot, need, out)) return 0;
  page_run_extend(arena, out);
  const uint32_t number = page_run_seize(arena, out);
  page_run_touch(arena, out, gm__arena_chunk(arena, number));
  return number;
}
