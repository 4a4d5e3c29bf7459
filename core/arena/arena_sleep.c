#include "core/arena/arena_sleep.h"

#include <inttypes.h>

#include "core/arena/arena.h"
#include "core/arena/reclaim.h"
#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/poll.h"

/* Invariants. While a pool sleeps, no chunk of its pages is handed out, so nobody unmaps or maps but trims, which
 * forget handles that are asleep. Whoever owns a chunk in state AWAY may use its memory outside the lock. So pages
 * fall asleep only while none is AWAY, apart from stranded ones, which are nobody's. The kept contents are dropped
 * only when all of them are back. */

static const char sleep_op[] = "gm_pool_sleep_whole";
static const uint64_t sleep_patience_ns = 1000000000;

/* ---- walks ---- */

/* The next segment that is a range. A range lives as long as its pool. REQUIRES: arena lock. */
static gm__segment *sleep_next_range(const gm__arena *arena, uint32_t *index) {
  while (++*index < arena->segment_capacity) {
    gm__segment *segment = arena->segment_table[*index];
    if (segment && segment->range) return segment;
  }
  return NULL;
}

/* Walks over all ranges of the set, begun with zeros. */
typedef struct sleep_walk {
  gm__arena *arena;
  uint32_t number, index;
} sleep_walk;

static gm__segment *sleep_next(const gm__arena_set *set, sleep_walk *walk) {
  for (; (walk->arena = gm__arena_at(set, walk->number)); walk->number++, walk->index = 0) {
    gm__arena_lock(walk->arena);
    gm__segment *segment = sleep_next_range(walk->arena, &walk->index);
    gm__arena_unlock(walk->arena);
    if (segment) return segment;
  }
  return NULL;
}

/* ---- closing ---- */

static uint32_t sleep_count_stranded(const gm__arena *arena) {
  uint32_t count = 0;
  for (uint32_t number = arena->stranded; number; number = gm__arena_chunk(arena, number)->next) count++;
  return count;
}

/* The things that keep pages awake: a block that is mapped for the host, or a chunk that is AWAY. */
typedef struct sleep_found {
  bool mapped, taken;
} sleep_found;

/* REQUIRES: arena lock. */
static void sleep_look(const gm__arena *arena, sleep_found *found) {
  uint32_t index = 0, away = 0;
  for (const gm__segment *segment; (segment = sleep_next_range(arena, &index));) {
    for (uint32_t number = gm__arena_chunk(arena, segment->edge)->right; number;) {
      const gm__chunk *chunk = gm__arena_chunk(arena, number);
      const gm__cold *cold = gm__arena_cold(arena, number);
      away += gm__chunk_is(chunk) == GM__CHUNK_AWAY;
      found->mapped |= cold && cold->mappings;
      number = chunk->right;
    }
  }
  found->taken |= away > sleep_count_stranded(arena);
}

/* A thread that has a chunk in hand makes a block of it soon, and none gets another one. */
static sleep_found sleep_look_all(const gm__arena_set *set) {
  sleep_found found;
  gm__poll poll = gm__poll_until(gm__deadline_after(sleep_patience_ns));
  do {
    found = (sleep_found){false, false};
    for (gm__arena *arena = NULL; (arena = gm__arena_next(set, arena));) sleep_look(arena, &found);
  } while (!found.mapped && found.taken && gm__poll_again(&poll));
  return found;
}

gm_status gm__arenas_close_pages(gm__arena_set *set, gm_error *err) {
  gm__arena *arena;
  for (uint32_t i = 0; (arena = gm__arena_at(set, i)); i++) gm__arena_retry(arena);
  atomic_store_explicit(&set->provider->pages.asleep, true, memory_order_seq_cst);
  for (arena = NULL; (arena = gm__arena_next(set, arena));) gm__arena_close_fast(arena);
  const sleep_found found = sleep_look_all(set);
  if (!found.mapped && !found.taken) return GM_OK;
  gm__arenas_open_pages(set);
  return gm__fail(err, GM_ERR_BUSY, sleep_op, "%s of pool \"%s\"",
                  found.mapped ? "gm_block_map has mapped a block" : "another thread is about to get a block",
                  set->provider->name);
}

void gm__arenas_open_pages(gm__arena_set *set) {
  atomic_store_explicit(&set->provider->pages.asleep, false, memory_order_seq_cst);
  for (gm__arena *arena = NULL; (arena = gm__arena_next(set, arena));) gm__arena_open_fast(arena);
}

/* ---- contents ---- */

enum { SLEEP_WORD = 64 };

/* The pages of a range that blocks lie in, one bit for each. */
typedef struct sleep_map {
  gm__va_range *range;
  uint64_t *words;
  uint64_t page_bytes;
} sleep_map;

static size_t sleep_map_words(const gm__va_range *range) { return range->page_count / SLEEP_WORD + 1; }

static bool sleep_map_has(const sleep_map *map, uint32_t page) {
  return map->words[page / SLEEP_WORD] >> page % SLEEP_WORD & 1;
}

/* REQUIRES: arena lock. */
static void sleep_map_mark(const gm__arena *arena, const gm__segment *segment, const sleep_map *map) {
  for (uint32_t number = gm__arena_chunk(arena, segment->edge)->right; number;) {
    const gm__chunk *chunk = gm__arena_chunk(arena, number);
    const uint64_t begin = chunk->address - map->range->address, end = begin + gm__arena_bytes(arena, chunk);
    const bool live = gm__chunk_is(chunk) == GM__CHUNK_LIVE;
    for (uint64_t page = begin / map->page_bytes; live && page * map->page_bytes < end; page++) {
      map->words[page / SLEEP_WORD] |= UINT64_C(1) << page % SLEEP_WORD;
    }
    number = chunk->right;
  }
}

/* Makes the map. False without host memory. */
static bool sleep_map_open(gm__arena *arena, const gm__segment *segment, sleep_map *out) {
  *out = (sleep_map){.range = segment->range, .page_bytes = gm__arena_page(arena)};
  out->words = gm__alloc_array(arena->chunks.services, sleep_map_words(segment->range), sizeof *out->words);
  if (!out->words) return false;
  gm__arena_lock(arena);
  sleep_map_mark(arena, segment, out);
  gm__arena_unlock(arena);
  return true;
}

static void sleep_map_close(const gm__arena *arena, const sleep_map *map) {
  gm__release(arena->chunks.services, map->words, sleep_map_words(map->range) * sizeof *map->words);
}

static uint64_t sleep_map_bytes(const sleep_map *map) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < sleep_map_words(map->range); i++) {
    bytes += (uint64_t)__builtin_popcountll(map->words[i]) * map->page_bytes;
  }
  return bytes;
}

/* Saves each row of pages that blocks lie in. */
static gm_status sleep_map_save(const gm__arena *arena, const sleep_map *map, gm_stream *stream, gm_error *err) {
  gm__access part = {.device = arena->set->provider->device, .memory = map->range->memory};
  const uint64_t size = map->page_bytes;
  gm_status status = GM_OK;
  for (uint32_t page = 0, end; page < map->range->page_count && !status; page = end) {
    for (end = page; end < map->range->page_count && sleep_map_has(map, end);) end++;
    part.offset = page * size;
    part.bytes = (end - page) * size;
    if (end > page) status = gm__saved_pages_read(&part, stream, &map->range->saved, err);
    if (end == page) end++;
  }
  return status;
}

static gm_status sleep_no_list(gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, sleep_op, "no host memory for a list of pages");
}

/* Has the host the room for all that is kept? It grants memory long before it has it. */
static gm_status sleep_check_host(const gm__arena_set *set, const gm__sleep_params *params, gm_error *err) {
  uint64_t bytes = 0;
  sleep_walk walk = {.number = 0};
  for (const gm__segment *segment; (segment = sleep_next(set, &walk));) {
    sleep_map map;
    if (!sleep_map_open(walk.arena, segment, &map)) return sleep_no_list(err);
    bytes += sleep_map_bytes(&map);
    sleep_map_close(walk.arena, &map);
  }
  if (bytes <= params->host_bytes) return GM_OK;
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, sleep_op,
                  "the host has %" PRIu64 " bytes free for the %" PRIu64 " that pool \"%s\" holds", params->host_bytes,
                  bytes, set->provider->name);
}

static gm_status sleep_save(const gm__arena_set *set, const gm__sleep_params *params, gm_error *err) {
  sleep_walk walk = {.number = 0};
  gm_status status = sleep_check_host(set, params, err);
  for (const gm__segment *segment; !status && (segment = sleep_next(set, &walk));) {
    sleep_map map;
    if (!sleep_map_open(walk.arena, segment, &map)) return sleep_no_list(err);
    status = sleep_map_save(walk.arena, &map, params->stream, err);
    sleep_map_close(walk.arena, &map);
  }
  return status;
}

static void sleep_drop_saved(const gm__arena_set *set) {
  sleep_walk walk = {.number = 0};
  for (const gm__segment *segment; (segment = sleep_next(set, &walk));) {
    gm__saved_pages_drop(gm__provider_services(set->provider), &segment->range->saved);
  }
}

/* ---- memory ---- */

static gm_status sleep_ranges(const gm__arena_set *set, uint64_t *bytes, gm_error *err) {
  sleep_walk walk = {.number = 0};
  gm_status status = GM_OK;
  for (const gm__segment *segment; !status && (segment = sleep_next(set, &walk));) {
    status = gm__va_range_sleep(set->provider, segment->range, bytes, err);
  }
  return status;
}

static gm_status sleep_wake_ranges(const gm__arena_set *set, gm_stream *stream, gm_error *err) {
  sleep_walk walk = {.number = 0};
  gm__va_range *first = NULL;
  for (const gm__segment *segment; (segment = sleep_next(set, &walk));) {
    segment->range->next = first;
    first = segment->range;
  }
  gm_status status = gm__va_ranges_wake(set->provider, first, err);
  for (const gm__va_range *range = first; range && !status; range = range->next) {
    status = gm__va_range_restore(set->provider, range, stream, err);
  }
  return status;
}

gm_status gm__arenas_sleep(gm__arena_set *set, const gm__sleep_params *params, uint64_t *bytes, bool *asleep,
                           gm_error *err) {
  *bytes = 0;
  gm_status status = params->keep ? sleep_save(set, params, err) : GM_OK;
  *asleep = !status;
  if (status) {
    sleep_drop_saved(set);
    return status;
  }
  status = sleep_ranges(set, bytes, err);
  if (status) *asleep = gm__arenas_wake(set, params->stream, NULL) != GM_OK;
  return status;
}

gm_status gm__arenas_wake(gm__arena_set *set, gm_stream *stream, gm_error *err) {
  uint64_t bytes = 0;
  const gm__arena *first = gm__arena_at(set, 0);
  if (first) gm__reclaim_pages(set, first, UINT64_MAX, UINT64_MAX); /* what was freed meanwhile needs no memory */
  const gm_status status = sleep_wake_ranges(set, stream, err);
  if (status) {
    sleep_ranges(set, &bytes, NULL);
  } else {
    sleep_drop_saved(set);
  }
  return status;
}
