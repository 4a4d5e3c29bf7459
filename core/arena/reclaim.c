#include "core/arena/reclaim.h"

#include "core/arena/free_chunks.h"
#include "core/arena/grow.h"
#include "core/arena/page_run.h"
#include "core/arena/quick_flush.h"
#include "core/arena/segment.h"
#include "core/arena/settle.h"
#include "core/base/alloc.h"
#include "core/base/poll.h"
#include "core/base/saturate.h"

/* Invariants. The driver is called for chunks that are AWAY: they leave the free chunks first, and come back as free
 * chunks and unmapped chunks. Nothing is unmapped while a stream may use it: only idle free chunks give up handles. */

enum { RECLAIM_IDLE_SHARE = 2 }; /* of the peak in use: may lie idle in segments that are too small */

static const uint64_t reclaim_patience_ns = 1000000000; /* how long a trim waits for a thread that maps pages */

/* ---- stranded chunks ---- */

/* Pages of a range. */
typedef struct reclaim_part {
  gm__va_range *range;
  uint64_t from, to;
} reclaim_part;

/* The pages that the chunk touches. */
static reclaim_part reclaim_touched(const gm__arena *arena, const gm__chunk *chunk) {
  gm__va_range *range = arena->segment_table[chunk->segment_index]->range;
  const uint64_t page = gm__arena_page(arena), begin = chunk->address - range->address;
  return (reclaim_part){range, begin / page, (begin + gm__arena_bytes(arena, chunk) + page - 1) / page};
}

void gm__arena_retry(gm__arena *arena) {
  if (!arena->stranded) return;
  gm__arena_lock(arena);
  uint32_t number = arena->stranded;
  arena->stranded = 0;
  for (uint32_t next; number; number = next) {
    const gm__chunk *chunk = gm__arena_chunk(arena, number);
    const reclaim_part part = reclaim_touched(arena, chunk);
    next = chunk->next;
    if (arena->set->provider->pages.shut_count) {
      gm__arena_unlock(arena);
      gm__va_range_retry(arena->set->provider, part.range, part.from, part.to);
      gm__arena_lock(arena);
    }
    gm__page_run_return(arena, part.range, number);
  }
  gm__arena_publish(arena);
  gm__arena_unlock(arena);
}

/* ---- giving up handles ---- */

/* The next handle that lies wholly within [*page, to), and its pages; 0: there is none. *page moves behind it. It reads
 * the range alone, so the pages lock is not needed. */
static uint32_t reclaim_next_handle(const gm__va_range *range, uint64_t *page, uint64_t to, uint64_t *out_pages) {
  while (*page < to) {
    const uint64_t first = *page;
    const uint32_t number = range->handle_of[first];
    while (*page < to && range->handle_of[*page] == number) *page += 1;
    const bool begins = first == 0 || range->handle_of[first - 1] != number;
    const bool ends = *page == range->page_count || range->handle_of[*page] != number;
    if (!number || !begins || !ends) continue;
    *out_pages = *page - first;
    return number;
  }
  return 0;
}

/* Like reclaim_next_handle, for chosen handles. */
static uint32_t reclaim_next_chosen(const gm__va_range *range, const gm__page_choice *choice, uint64_t *page,
                                    uint64_t to, uint64_t *out_pages) {
  uint32_t number;
  do {
    number = reclaim_next_handle(range, page, to, out_pages);
  } while (number && *out_pages > choice->most_pages);
  return number;
}

/* reclaim_first_of: the first free chunk of a bin. reclaim_first_idle: the first idle one in that bin or a larger one.
 * reclaim_next_idle: the one after it. 0: there is none. */
static uint32_t reclaim_first_of(const gm__tlsf *tlsf, uint32_t bin) {
  return bin == GM__TLSF_BINS ? 0 : tlsf->heads[bin];
}

static uint32_t reclaim_first_idle(const gm__arena *arena, gm__area area, uint32_t bin) {
  const gm__tlsf *tlsf = &arena->caches[GM__STREAM_CACHE_IDLE]->tlsf[area];
  return reclaim_first_of(tlsf, gm__tlsf_next(tlsf, bin));
}

static uint32_t reclaim_next_idle(const gm__arena *arena, uint32_t free_chunk) {
  const gm__chunk *chunk = gm__arena_chunk(arena, free_chunk);
  const gm__tlsf *tlsf = gm__stream_cache_bins(arena->caches[GM__STREAM_CACHE_IDLE], chunk);
  return chunk->next ? chunk->next : reclaim_first_of(tlsf, gm__tlsf_next_after(tlsf, chunk->bin));
}

/* The bin of the smallest free chunks that may cover a page. */
static uint32_t reclaim_page_bin(const gm__arena *arena) {
  return gm__tlsf_bin((uint32_t)(gm__arena_page(arena) >> arena->shift));
}

/* The range that the free chunk lies in, and the whole pages within the chunk. NULL: it lies in a segment without
 * pages. */
static gm__va_range *reclaim_pages_of(const gm__arena *arena, uint32_t free_chunk, uint64_t *from, uint64_t *to) {
  const gm__chunk *chunk = gm__arena_chunk(arena, free_chunk);
  gm__va_range *range = arena->segment_table[chunk->segment_index]->range;
  if (!range) return NULL;
  const uint64_t page = gm__arena_page(arena), begin = chunk->address - range->address;
  *from = (begin + page - 1) / page;
  *to = (begin + gm__arena_bytes(arena, chunk)) / page;
  return range;
}

uint64_t gm__arena_unused_page_bytes(const gm__arena *arena) {
  const uint64_t in_use = atomic_load_explicit(&arena->stats.in_use, memory_order_relaxed);
  const uint64_t pages = arena->mapped_pages[GM__AREA_LARGE] + arena->mapped_pages[GM__AREA_SMALL];
  return gm__sub_sat(pages * gm__arena_page(arena), in_use);
}

uint64_t gm__reclaim_handle_bytes(const gm__arena *arena, const gm__va_range *range, uint64_t address, uint64_t bytes) {
  const uint64_t page = gm__arena_page(arena), begin = address - range->address, to = (begin + bytes) / page;
  uint64_t from = (begin + page - 1) / page, sum = 0, pages;
  while (reclaim_next_handle(range, &from, to, &pages)) sum += pages * page;
  return sum;
}

uint64_t gm__arena_idle_page_bytes(const gm__arena *arena, gm__area area) {
  uint64_t bytes = 0, from, to, pages;
  for (uint32_t free_chunk = reclaim_first_idle(arena, area, reclaim_page_bin(arena)); free_chunk;
       free_chunk = reclaim_next_idle(arena, free_chunk)) {
    const gm__va_range *range = reclaim_pages_of(arena, free_chunk, &from, &to);
    while (range && reclaim_next_handle(range, &from, to, &pages)) bytes += pages * gm__arena_page(arena);
  }
  return bytes;
}

/* How far a walk over the idle free chunks of an area has come. It visits each once, though other threads use the arena
 * between two steps. It misses free chunks that come before its place meanwhile. */
typedef struct reclaim_place {
  gm__area area;
  uint32_t free_chunk; /* the next one; 0: there is none */
  uint32_t bin;        /* where it was then */
} reclaim_place;

static void reclaim_set_place(const gm__arena *arena, reclaim_place *place, uint32_t free_chunk) {
  place->free_chunk = free_chunk;
  place->bin = gm__arena_chunk(arena, free_chunk)->bin;
}

/* The free chunk of the place. When that has left its bin, the first one from the bin on. */
static uint32_t reclaim_chunk_at(const gm__arena *arena, const reclaim_place *place) {
  const gm__chunk *chunk = gm__arena_chunk(arena, place->free_chunk);
  const bool there = chunk->state == GM__CHUNK_FREE && chunk->cache == GM__STREAM_CACHE_IDLE &&
                     chunk->bin == place->bin && gm__area_of(chunk) == place->area;
  return there || !place->free_chunk ? place->free_chunk : reclaim_first_idle(arena, place->area, place->bin);
}

/* The next idle free chunk with chosen handles in it, AWAY now; 0: there is none. */
static uint32_t reclaim_seize_idle(gm__arena *arena, const gm__page_choice *choice, reclaim_place *place,
                                   reclaim_part *part) {
  for (uint32_t free_chunk = reclaim_chunk_at(arena, place), next; free_chunk; free_chunk = next) {
    gm__chunk *chunk = gm__arena_chunk(arena, free_chunk);
    uint64_t pages;
    next = reclaim_next_idle(arena, free_chunk);
    if (!gm__freed_by(chunk->seq, choice->freed_by)) continue;
    part->range = reclaim_pages_of(arena, free_chunk, &part->from, &part->to);
    uint64_t from = part->from;
    if (!part->range || !reclaim_next_chosen(part->range, choice, &from, part->to, &pages)) continue;
    reclaim_set_place(arena, place, next);
    gm__tlsf_take(&arena->chunks, &arena->caches[GM__STREAM_CACHE_IDLE]->tlsf[place->area], free_chunk);
    chunk->state = GM__CHUNK_AWAY;
    return free_chunk;
  }
  return 0;
}

/* Unmaps chosen handles until they have `bytes`. Returns the bytes unmapped. */
static uint64_t reclaim_unmap(const gm__arena *arena, const reclaim_part *part, const gm__page_choice *choice,
                              uint64_t bytes) {
  uint64_t done = 0, from = part->from, pages;
  uint32_t number;
  while (done < bytes && (number = reclaim_next_chosen(part->range, choice, &from, part->to, &pages))) {
    if (!gm__va_range_unmap(arena->set->provider, part->range, number)) break;
    done += pages * gm__arena_page(arena);
  }
  return done;
}

/* Small free chunks come first, because large ones serve more requests. */
static uint64_t reclaim_pages_from(gm__arena *arena, gm__area area, const gm__page_choice *choice, uint64_t bytes) {
  uint64_t done = 0, one = 1;
  reclaim_part part;
  reclaim_place place = {.area = area};
  gm__arena_lock(arena);
  reclaim_set_place(arena, &place, reclaim_first_idle(arena, area, reclaim_page_bin(arena)));
  while (one && done < bytes) {
    const uint32_t number = reclaim_seize_idle(arena, choice, &place, &part);
    if (!number) break;
    gm__arena_unlock(arena); /* a range lives as long as its pool */
    one = reclaim_unmap(arena, &part, choice, bytes - done);
    done += one;
    gm__arena_lock(arena);
    gm__page_run_return(arena, part.range, number);
  }
  gm__arena_unlock(arena);
  return done;
}

uint64_t gm__reclaim_pages_from(gm__arena *arena, const gm__page_choice *choice, uint64_t bytes) {
  const uint64_t large = reclaim_pages_from(arena, GM__AREA_LARGE, choice, bytes);
  if (choice->large_only) return large;
  return large + reclaim_pages_from(arena, GM__AREA_SMALL, choice, gm__sub_sat(bytes, large));
}

uint64_t gm__reclaim_pages_of(gm__arena *arena, const gm__page_choice *choice, uint64_t bytes) {
  gm__arena_lock(arena);
  gm__arena_tidy(arena, true);
  gm__arena_unlock(arena);
  if (!gm__arena_has_pages(arena)) return 0;
  const uint64_t done = gm__reclaim_pages_from(arena, choice, bytes);
  gm__arena_lock(arena);
  gm__arena_publish(arena);
  gm__arena_unlock(arena);
  return done;
}

uint64_t gm__reclaim_pages(gm__arena_set *set, const gm__arena *first, uint64_t bytes, uint64_t freed_by) {
  uint64_t done = 0;
  const gm__page_choice choice = {.freed_by = freed_by, .most_pages = UINT64_MAX};
  const uint32_t count = atomic_load_explicit(&set->count, memory_order_acquire);
  for (uint32_t i = 0; i < count && done < bytes; i++) {
    done += gm__reclaim_pages_of(gm__arena_at(set, (first->number + i) % count), &choice, bytes - done);
  }
  return done;
}

/* ---- segments ---- */

void gm__arena_tidy(gm__arena *arena, bool submit) {
  gm__free_chunks_flush(arena);
  if (submit) {
    gm__order_refresh(&arena->order, UINT64_MAX);
  } else {
    gm__order_look(&arena->order, UINT64_MAX);
  }
  gm__settle_all(arena);
}

/* Takes an idle segment out of the other arena; NULL: none is large enough. */
static gm__segment *reclaim_detach(gm__arena *other, const gm__want *want) {
  gm__segment *found = NULL;
  gm__arena_lock(other);
  gm__arena_tidy(other, true);
  for (gm__segment *segment = other->segments; segment && !found; segment = segment->next) {
    if (!gm__segment_is_idle(other, segment)) continue;
    if (gm__free_chunk_fits(other, want, gm__arena_chunk(other, segment->edge)->right)) found = segment;
  }
  if (found) gm__segment_close(other, found);
  gm__arena_publish(other);
  gm__arena_unlock(other);
  return found;
}

static bool reclaim_attach(gm__arena *arena, gm__segment *segment) {
  gm__leaving leaving = {0};
  gm__arena_lock(arena);
  segment->arena = arena;
  const bool opened = gm__segment_open(arena, segment);
  gm__arena_publish(arena);
  gm__arena_unlock(arena);
  if (opened) return true;
  gm__segment_give_back(arena->set, segment, &leaving);
  gm__provider_return(arena->set->provider, &leaving);
  return false;
}

void gm__segment_give_back(gm__arena_set *set, gm__segment *segment, gm__leaving *leaving) {
  gm__mutex_lock(&set->provider->lock);
  segment->allocation->segment = NULL;
  segment->allocation->state = GM__ALLOCATION_AWAY;
  gm__provider_leave(set->provider, leaving, segment->allocation);
  gm__mutex_unlock(&set->provider->lock);
  gm__release(gm__provider_services(set->provider), segment, sizeof *segment);
}

/* The oldest segment of the arena. */
static gm__segment *reclaim_oldest(const gm__arena *arena) {
  gm__segment *oldest = arena->segments;
  while (oldest && oldest->next) oldest = oldest->next;
  return oldest;
}

static uint64_t reclaim_idle_bytes(const gm__arena *arena) {
  uint64_t bytes = 0;
  for (const gm__segment *segment = arena->segments; segment; segment = segment->next) {
    if (gm__segment_is_idle(arena, segment)) bytes += segment->allocation->bytes;
  }
  return bytes;
}

/* The arena keeps its idle segments up to half of the most that it ever had in use at once. So what comes again is not
 * given back. */
uint64_t gm__reclaim_small(gm__arena *arena, uint64_t bytes) {
  gm__leaving leaving = {0};
  if (arena->set->provider->no_trim) return 0;
  gm__arena_lock(arena);
  const uint64_t peak = gm__stats_peak(&arena->stats.peak_in_use, &arena->stats.before_in_use);
  const uint64_t idle = reclaim_idle_bytes(arena), keep = gm__max(GM__GROWTH_MOST, peak / RECLAIM_IDLE_SHARE);
  for (gm__segment *segment = idle > keep ? reclaim_oldest(arena) : NULL, *newer; segment; segment = newer) {
    newer = segment->prev;
    if (idle - leaving.bytes <= keep) break;
    if (segment->allocation->bytes >= bytes || !gm__segment_is_idle(arena, segment)) continue;
    gm__segment_close(arena, segment);
    gm__segment_give_back(arena->set, segment, &leaving);
  }
  if (leaving.first) gm__arena_publish(arena);
  gm__arena_unlock(arena);
  gm__provider_return(arena->set->provider, &leaving);
  return leaving.bytes;
}

bool gm__reclaim_move(gm__arena *arena, const gm__want *want) {
  gm__arena *other;
  for (uint32_t i = 0; (other = gm__arena_at(arena->set, i)); i++) {
    if (other == arena || !gm__kind_serves(&other->kind, &arena->kind)) continue;
    gm__segment *segment = reclaim_detach(other, want);
    if (segment) return reclaim_attach(arena, segment);
  }
  return false;
}

void gm__reclaim_segments(gm__arena_set *set, const gm__segment_choice *choice, gm__leaving *leaving) {
  for (gm__arena *arena = NULL; (arena = gm__arena_next(set, arena));) {
    gm__arena_tidy(arena, choice->submit);
    for (gm__segment *segment = arena->segments, *next; segment; segment = next) {
      next = segment->next;
      if (gm__sub_sat(gm__arenas_pooled(set), leaving->bytes) <= choice->keep_bytes)
        break; /* others allocate meanwhile */
      if (!gm__segment_is_idle_since(arena, segment, choice->freed_by)) continue;
      gm__segment_close(arena, segment);
      gm__segment_give_back(set, segment, leaving);
    }
    gm__arena_publish(arena);
  }
}

static uint64_t reclaim_idle_pages(const gm__arena *arena) {
  if (!gm__arena_has_pages(arena)) return 0;
  return gm__arena_idle_page_bytes(arena, GM__AREA_LARGE) + gm__arena_idle_page_bytes(arena, GM__AREA_SMALL);
}

void gm__arena_publish(gm__arena *arena) {
  uint64_t bytes = reclaim_idle_pages(arena), charged = bytes;
  for (const gm__segment *segment = arena->segments; segment; segment = segment->next) {
    if (!gm__segment_is_idle(arena, segment)) continue;
    bytes += segment->allocation->bytes;
    if (gm__device_is_charged(arena->set->provider->device, &segment->allocation->memory))
      charged += segment->allocation->bytes;
  }
  atomic_store_explicit(&arena->stats.reclaimable, bytes, memory_order_relaxed);
  if (!gm__provider_lends(arena->set->provider) || charged == arena->noted) return;
  gm__device_note_pooled(arena->set->provider->device, (int64_t)(charged - arena->noted));
  arena->noted = charged;
}

uint64_t gm__reclaim_trim_pages(gm__arena_set *set, uint64_t keep_bytes, uint64_t freed_by) {
  uint64_t given = 0;
  gm__arena *arena, *first = gm__arena_at(set, 0);
  if (!set->provider->pages.usable || !first) return 0;
  if (!gm__poll_lock(&set->provider->pages.lock, reclaim_patience_ns)) return 0;
  for (uint32_t i = 0; (arena = gm__arena_at(set, i)); i++) gm__arena_retry(arena);
  while (gm__arenas_pooled(set) > keep_bytes) {
    given += gm__pages_release(set->provider);
    const uint64_t pooled = gm__arenas_pooled(set);
    if (pooled <= keep_bytes || !gm__reclaim_pages(set, first, pooled - keep_bytes, freed_by)) break;
  }
  gm__mutex_unlock(&set->provider->pages.lock);
  return given;
}

void gm__arenas_look(gm__arena_set *set) {
  gm__arena *arena;
  for (uint32_t i = 0; (arena = gm__arena_at(set, i)); i++) {
    const void *owner = atomic_load_explicit(&arena->lock.owner, memory_order_relaxed);
    if (owner && owner != gm__thread_self()) continue;
    gm__arena_lock(arena);
    gm__free_chunks_flush(arena);
    gm__arena_publish(arena);
    gm__arena_unlock(arena);
  }
}
