#include "core/arena/grow.h"

#include "core/arena/free_chunks.h"
#include "core/arena/page_run.h"
#include "core/arena/reclaim.h"
#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"

/* Invariants. The driver is called for chunks that are AWAY: they leave the free chunks first, and come back as free
 * chunks and unmapped chunks. Nothing is unmapped while a stream may use it: only idle free chunks give up handles.
 *
 * Pages that lie idle elsewhere are mapped here before the arena takes more. That pays only when they are more than a
 * hundredth of what is in use. */

enum {
  MAP_GROW_IDLE_SHARE = 100,
  MAP_GROW_ASK_AFTER = 32 /* frees */
};

/* ---- growing ---- */

/* The longest row of pages that the page run lacks. */
static uint64_t map_grow_longest(const gm__page_run *run) {
  const gm__va_range *range = run->segment->range;
  uint64_t longest = 0, length = 0;
  for (uint32_t page = run->from; page < run->reach; page++) {
    length = range->handle_of[page] ? 0 : length + 1;
    longest = gm__max(longest, length);
  }
  return longest;
}

/* True when so many bytes are more than a hundredth of what the arena has in use: then they should serve elsewhere. */
static bool map_grow_is_worth(const gm__arena *arena, uint64_t bytes) {
  return bytes > atomic_load_explicit(&arena->stats.in_use, memory_order_relaxed) / MAP_GROW_IDLE_SHARE;
}

/* True when the arena may have pages that nobody uses. An arena that had none when it was asked is left alone until it
 * has freed some more. */
static bool map_grow_may_lend(const gm__arena *arena) {
  const uint64_t unused = gm__arena_unused_page_bytes(arena);
  const uint64_t frees = atomic_load_explicit(&arena->stats.frees, memory_order_relaxed);
  return gm__arena_has_pages(arena) && unused >= gm__arena_page(arena) && map_grow_is_worth(arena, unused) &&
         frees >= arena->ask_at;
}

/* Moves handles of other arenas into the handle cache, until they have `bytes` or no more are left. */
static uint64_t map_grow_reclaim_others(const gm__arena *arena, const gm__page_choice *choice, uint64_t bytes) {
  uint64_t done = 0;
  gm__arena *other;
  for (uint32_t i = 0; done < bytes && (other = gm__arena_at(arena->set, i)); i++) {
    if (other == arena || !map_grow_may_lend(other)) continue;
    const uint64_t lent = gm__reclaim_pages_of(other, choice, bytes - done);
    done += lent;
    if (lent && atomic_load_explicit(&other->stats.reclaimable, memory_order_relaxed)) continue;
    other->ask_at = atomic_load_explicit(&other->stats.frees, memory_order_relaxed) + MAP_GROW_ASK_AFTER;
  }
  return done;
}

/* Idle pages serve the page run before the device is asked for more. First come pages of the arena itself, if they are
 * worth it (the page run is AWAY), then those of other arenas. False: there are none. */
static bool map_grow_gather(gm__arena *arena, const gm__page_run *run) {
  const gm__page_choice choice = {.freed_by = UINT64_MAX, .most_pages = map_grow_longest(run), .large_only = true};
  const bool alone = atomic_load_explicit(&arena->set->count, memory_order_relaxed) == 1;
  uint64_t lack = gm__sub_sat(run->unmapped, gm__pages_idle_bytes(arena->set->provider));
  gm__arena_lock(arena);
  const bool loose = map_grow_is_worth(arena, gm__arena_idle_page_bytes(arena, GM__AREA_LARGE));
  gm__arena_unlock(arena);
  if (loose) lack = gm__sub_sat(lack, gm__reclaim_pages_from(arena, &choice, lack));
  if (alone) return loose;
  return !lack || map_grow_reclaim_others(arena, &choice, lack + run->extra) || loose;
}

/* Maps what the page run needs, and `extra` where nothing is idle. On failure it unmaps what it mapped. */
static gm_status map_grow_fill(gm__arena *arena, const gm__page_run *run, gm_error *err) {
  gm__arena_set *set = arena->set;
  gm__va_range *range = run->segment->range;
  const uint64_t made = set->provider->pages.made;
  set->provider->pages.drawn = 0;
  const uint32_t to = map_grow_gather(arena, run) ? run->to : run->reach;
  gm_status status = gm__va_range_fill(set->provider, range, run->from, to, run->reach, err);
  while (gm__is_shortage(status)) { /* or `extra` cannot be had */
    status = gm__va_range_fill(set->provider, range, run->from, run->to, run->to, err);
    if (!gm__is_shortage(status) || !gm__reclaim_pages(set, arena, run->unmapped, UINT64_MAX)) break;
  }
  if (status != GM_OK) gm__va_range_undo(set->provider, range, run->from, run->reach, made);
  return status;
}

/* Opens another range for the arena. */
static gm_status map_grow_open_range(gm__arena *arena, gm__area area, gm_error *err) {
  gm__arena_set *set = arena->set;
  const gm_services *services = arena->chunks.services;
  gm_memory memory;
  gm__segment *segment = gm__alloc(services, sizeof *segment);
  gm__va_range *range =
      segment ? gm__va_range_open(set->provider, area == GM__AREA_SMALL, &arena->mapped_pages[area], &memory, err)
              : NULL;
  gm_status status = range ? gm__provider_enter_range(set->provider, &memory, segment, &segment->allocation, err)
                           : GM_ERR_OUT_OF_DEVICE_MEMORY; /* of the type that is mapped */
  if (status == GM_OK) {
    segment->range = range;
    segment->area = area;
    gm__arena_lock(arena);
    if (!gm__segment_open(arena, segment)) status = GM_ERR_OUT_OF_HOST_MEMORY;
    gm__arena_unlock(arena);
    if (status == GM_OK) return GM_OK;
    gm__provider_leave_range(set->provider, segment->allocation);
  }
  if (range) gm__va_range_close(set->provider, range, &memory, GM_CLOSE_NORMAL);
  gm__release(services, segment, sizeof *segment);
  return gm__fail(err, status, "gm_alloc", "no host memory, or no addresses, for a range of the pool");
}

static gm_status map_grow_no_table(gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_alloc", "no host memory for the pool's table");
}

/* Finds a page run for the request, AWAY. 0: there is none, or no host memory (*status). */
static uint32_t map_grow_open_run(gm__arena *arena, const gm__want *want, gm__area area, gm__page_run *run,
                                  gm_status *status, gm_error *err) {
  uint32_t number = 0;
  const uint64_t granule = gm__arena_granule(arena);
  const uint64_t need = want->exact + (want->align > granule ? want->align - granule : 0);
  gm__arena_lock(arena);
  const int slot = gm__arena_slot(arena, want->stream);
  *status = GM_OK;
  if (!gm__chunks_reserve(&arena->chunks, GM__CARVE_CHUNKS) || !gm__lookup_reserve(&arena->lookup, &arena->chunks)) {
    *status = map_grow_no_table(err);
  } else {
    number = gm__page_run_open(arena, area, slot, need, run);
  }
  gm__arena_unlock(arena);
  return number;
}

/* The page run becomes a free chunk, as far as it was mapped, and the request gets its part. */
static uint32_t map_grow_close_run(gm__arena *arena, const gm__want *want, const gm__segment *segment,
                                   uint32_t number) {
  uint64_t pending;
  gm__order_verdict verdict;
  gm__arena_lock(arena);
  gm__page_run_return(arena, segment->range, number);
  uint32_t free_chunk = 0, part = 0;
  if (gm__chunks_reserve(&arena->chunks, GM__CARVE_CHUNKS) && gm__lookup_reserve(&arena->lookup, &arena->chunks)) {
    free_chunk = gm__free_chunks_find(arena, want, segment->area, gm__arena_slot(arena, want->stream), GM__ORDER_READY,
                                      &pending, &verdict);
  }
  if (free_chunk) {
    part = gm__free_chunk_carve(arena, want, free_chunk);
    gm__lookup_insert(&arena->lookup, &arena->chunks, part);
  }
  gm__arena_publish(arena);
  gm__arena_unlock(arena);
  return part;
}

static gm_status map_grow_locked(gm__arena *arena, const gm__want *want, uint32_t *out, gm_error *err) {
  gm__page_run run;
  gm_status status;
  gm__arena_retry(arena);
  const gm__area area = gm__arena_area(arena, want->exact >> arena->shift);
  uint32_t number = map_grow_open_run(arena, want, area, &run, &status, err);
  if (!number && status == GM_OK && want->exact <= gm__va_range_most_bytes(arena->set->provider)) {
    status = map_grow_open_range(arena, area, err);
    if (status == GM_OK) number = map_grow_open_run(arena, want, area, &run, &status, err);
  }
  if (status != GM_OK) return status;
  if (!number) return gm__fail(err, GM_ERR_ALLOCATION_TOO_LARGE, "gm_alloc", "no range of addresses has room for it");
  status = map_grow_fill(arena, &run, err);
  *out = map_grow_close_run(arena, want, run.segment, number);
  if (*out) return GM_OK;
  return status != GM_OK ? status : map_grow_no_table(err);
}

gm_status gm__map_grow(gm__arena *arena, const gm__want *want, uint32_t *out, gm_error *err) {
  gm__arena_set *set = arena->set;
  gm__mutex_lock(&set->provider->pages.lock);
  gm_status status = gm__pages_check_awake(set->provider, want, err);
  if (!status) status = map_grow_locked(arena, want, out, err);
  gm__mutex_unlock(&set->provider->pages.lock);
  return status;
}
