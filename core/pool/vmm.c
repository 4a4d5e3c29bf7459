#include "core/pool/vmm.h"

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/poll.h"
#include "core/base/saturate.h"
#include "core/pool/growth.h"
#include "core/pool/hole.h"
#include "core/pool/window.h"

/* Invariants. The driver is called for spans that are AWAY: taken out of the holes first, given back as holes and gaps,
 * as they are then, afterwards. Nothing is unmapped while a stream may use it: only idle holes give handles up.
 *
 * Pages that lie idle elsewhere are mapped anew before more of them are taken, once they are more than a hundredth of
 * what is in use: below that it is not worth the calls. */

enum {
  VMM_IDLE_SHARE = 100,
  VMM_ASK_AFTER = 32 /* frees */
};

static const uint64_t vmm_patience_ns = 1000000000; /* of a trim, for a thread that maps pages */

static uint64_t vmm_page(const gm__arena *arena) { return arena->pool->pages.page_bytes; }

bool gm__vmm_serves(const gm__arena *arena) { return arena->pool->pages.usable && arena->common; }

/* ---- what is stranded ---- */

/* Part of a range. */
typedef struct vmm_part {
  gm__range *range;
  uint64_t from, to; /* pages */
} vmm_part;

/* The pages that the span touches. */
static vmm_part vmm_touched(const gm__arena *arena, const gm__span *span) {
  gm__range *range = arena->homes[span->home]->range;
  const uint64_t page = vmm_page(arena), begin = span->address - range->address;
  return (vmm_part){range, begin / page, (begin + gm__arena_bytes(arena, span) + page - 1) / page};
}

/* Pages that the driver would not unmap, and spans that could not be told as holes and gaps, get another chance. Who
 * has the pages' lock alone changes what is stranded. */
static void vmm_retry(gm__arena *arena) {
  if (!arena->stranded) return;
  gm__arena_lock(arena);
  uint32_t number = arena->stranded;
  arena->stranded = 0;
  for (uint32_t next; number; number = next) {
    const gm__span *span = gm__arena_span(arena, number);
    const vmm_part part = vmm_touched(arena, span);
    next = span->next;
    if (arena->pool->pages.shut_count) {
      gm__arena_unlock(arena);
      gm__pages_retry(arena->pool, part.range, part.from, part.to);
      gm__arena_lock(arena);
    }
    gm__window_give(arena, part.range, number);
  }
  gm__growth_publish(arena);
  gm__arena_unlock(arena);
}

/* ---- giving handles up ---- */

/* Which handles are to be given up: in holes that were freed last by that time, and not too large to be of use. */
typedef struct vmm_choice {
  uint64_t freed_by, most_pages;
} vmm_choice;

/* The next handle at or behind *page that lies wholly within [*page, to), and its pages; 0: none. *page is behind it
 * afterwards. Looks at the range alone: the pages' lock need not be held. */
static uint32_t vmm_next_handle(const gm__range *range, uint64_t *page, uint64_t to, uint64_t *out_pages) {
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

/* That is chosen. */
static uint32_t vmm_next_chosen(const gm__range *range, const vmm_choice *choice, uint64_t *page, uint64_t to,
                                uint64_t *out_pages) {
  uint32_t number;
  do {
    number = vmm_next_handle(range, page, to, out_pages);
  } while (number && *out_pages > choice->most_pages);
  return number;
}

/* The first hole of a bin, GM__HEAP_BINS for none; the first idle one in that bin or in one of larger holes; the one
 * behind a hole; 0: no more. */
static uint32_t vmm_first_of(const gm__heap *heap, uint32_t bin) { return bin == GM__HEAP_BINS ? 0 : heap->heads[bin]; }

static uint32_t vmm_first_idle(const gm__arena *arena, uint32_t bin) {
  const gm__heap *heap = &arena->lanes[GM__LANE_IDLE]->heap;
  return vmm_first_of(heap, gm__heap_next(heap, bin));
}

static uint32_t vmm_next_idle(const gm__arena *arena, uint32_t hole) {
  const gm__heap *heap = &arena->lanes[GM__LANE_IDLE]->heap;
  const gm__span *span = gm__arena_span(arena, hole);
  return span->next ? span->next : vmm_first_of(heap, gm__heap_next_after(heap, span->bin));
}

/* Of the smallest holes that may have a whole page in them. */
static uint32_t vmm_page_bin(const gm__arena *arena) {
  return gm__heap_bin((uint32_t)(vmm_page(arena) >> arena->shift));
}

/* The range that the hole is in, and the whole pages within; NULL: a segment, which has none. */
static gm__range *vmm_pages_of(const gm__arena *arena, uint32_t hole, uint64_t *from, uint64_t *to) {
  const gm__span *span = gm__arena_span(arena, hole);
  gm__range *range = arena->homes[span->home]->range;
  if (!range) return NULL;
  const uint64_t page = vmm_page(arena), begin = span->address - range->address;
  *from = (begin + page - 1) / page;
  *to = (begin + gm__arena_bytes(arena, span)) / page;
  return range;
}

/* Mapped, and nobody's: holes, quick lists, and what is beside them in a page. */
static uint64_t vmm_unused_bytes(const gm__arena *arena) {
  const uint64_t in_use = atomic_load_explicit(&arena->tally.in_use, memory_order_relaxed);
  return gm__sub_sat(arena->mapped_pages * vmm_page(arena), in_use);
}

uint64_t gm__vmm_idle_bytes(const gm__arena *arena) {
  uint64_t bytes = 0, from, to, pages;
  for (uint32_t hole = vmm_first_idle(arena, vmm_page_bin(arena)); hole; hole = vmm_next_idle(arena, hole)) {
    const gm__range *range = vmm_pages_of(arena, hole, &from, &to);
    while (range && vmm_next_handle(range, &from, to, &pages)) bytes += pages * vmm_page(arena);
  }
  return bytes;
}

/* How far a look at the idle holes has come. Each is passed once, though others use the arena between two steps: a hole
 * that was put before the place meanwhile is not seen. */
typedef struct vmm_place {
  uint32_t hole; /* the next one; 0: there is none */
  uint32_t bin;  /* that it was in */
} vmm_place;

static void vmm_set_place(const gm__arena *arena, vmm_place *place, uint32_t hole) {
  *place = (vmm_place){.hole = hole, .bin = gm__arena_span(arena, hole)->bin};
}

/* The hole of the place; where it is not in that bin any more, the first one from there on. */
static uint32_t vmm_hole_at(const gm__arena *arena, const vmm_place *place) {
  const gm__span *span = gm__arena_span(arena, place->hole);
  const bool there = span->state == GM__SPAN_HOLE && span->lane == GM__LANE_IDLE && span->bin == place->bin;
  return there || !place->hole ? place->hole : vmm_first_idle(arena, place->bin);
}

/* The next idle hole with chosen handles in it, AWAY now; 0: none. */
static uint32_t vmm_seize_idle(gm__arena *arena, const vmm_choice *choice, vmm_place *place, vmm_part *part) {
  for (uint32_t hole = vmm_hole_at(arena, place), next; hole; hole = next) {
    gm__span *span = gm__arena_span(arena, hole);
    uint64_t pages;
    next = vmm_next_idle(arena, hole);
    if (!gm__freed_by(span->seq, choice->freed_by)) continue;
    part->range = vmm_pages_of(arena, hole, &part->from, &part->to);
    uint64_t from = part->from;
    if (!part->range || !vmm_next_chosen(part->range, choice, &from, part->to, &pages)) continue;
    vmm_set_place(arena, place, next);
    gm__heap_take(&arena->spans, &arena->lanes[GM__LANE_IDLE]->heap, hole);
    span->state = GM__SPAN_AWAY;
    return hole;
  }
  return 0;
}

/* Unmap chosen handles of the part until there are `bytes` of them; what was unmapped. */
static uint64_t vmm_unmap(const gm__arena *arena, const vmm_part *part, const vmm_choice *choice, uint64_t bytes) {
  uint64_t done = 0, from = part->from, pages;
  uint32_t number;
  while (done < bytes && (number = vmm_next_chosen(part->range, choice, &from, part->to, &pages))) {
    if (!gm__pages_unmap(arena->pool, part->range, number)) break;
    done += pages * vmm_page(arena);
  }
  return done;
}

/* Handles of the arena become spare, at least `bytes` of them if there are so many to choose from: of small holes
 * first, because large ones serve more requests. */
static uint64_t vmm_reclaim_from(gm__arena *arena, const vmm_choice *choice, uint64_t bytes) {
  uint64_t done = 0, one = 1;
  vmm_part part;
  vmm_place place;
  gm__arena_lock(arena);
  vmm_set_place(arena, &place, vmm_first_idle(arena, vmm_page_bin(arena)));
  while (one && done < bytes) {
    const uint32_t number = vmm_seize_idle(arena, choice, &place, &part);
    if (!number) break;
    gm__arena_unlock(arena); /* a range stays as long as its pool */
    one = vmm_unmap(arena, &part, choice, bytes - done);
    done += one;
    gm__arena_lock(arena);
    gm__window_give(arena, part.range, number);
  }
  gm__arena_unlock(arena);
  return done;
}

/* The same after its streams were asked. */
static uint64_t vmm_reclaim_tidy(gm__arena *arena, const vmm_choice *choice, uint64_t bytes) {
  gm__arena_lock(arena);
  gm__growth_tidy(arena);
  gm__arena_unlock(arena);
  if (!gm__vmm_serves(arena)) return 0;
  const uint64_t done = vmm_reclaim_from(arena, choice, bytes);
  gm__arena_lock(arena);
  gm__growth_publish(arena);
  gm__arena_unlock(arena);
  return done;
}

/* The same of all arenas, that one first. */
static uint64_t vmm_reclaim(gm_pool *pool, const gm__arena *first, uint64_t bytes, uint64_t freed_by) {
  uint64_t done = 0;
  const vmm_choice choice = {.freed_by = freed_by, .most_pages = UINT64_MAX};
  const uint32_t count = atomic_load_explicit(&pool->arena_count, memory_order_acquire);
  for (uint32_t i = 0; i < count && done < bytes; i++) {
    done += vmm_reclaim_tidy(gm__arena_at(pool, (first->number + i) % count), &choice, bytes - done);
  }
  return done;
}

/* ---- growing ---- */

/* Most pages in one piece that the window lacks. */
static uint64_t vmm_longest_gap(const gm__window *window) {
  const gm__range *range = window->segment->range;
  uint64_t longest = 0, length = 0;
  for (uint32_t page = window->from; page < window->reach; page++) {
    length = range->handle_of[page] ? 0 : length + 1;
    longest = gm__max(longest, length);
  }
  return longest;
}

/* Is that more than a hundredth of what the arena has in use, so that it should serve elsewhere? */
static bool vmm_is_worth(const gm__arena *arena, uint64_t bytes) {
  return bytes > atomic_load_explicit(&arena->tally.in_use, memory_order_relaxed) / VMM_IDLE_SHARE;
}

/* Has the arena pages that nobody uses? One that had none, or none left, when it was asked is left alone
 * until it has freed some more. */
static bool vmm_may_lend(const gm__arena *arena) {
  const uint64_t unused = vmm_unused_bytes(arena);
  const uint64_t frees = atomic_load_explicit(&arena->tally.frees, memory_order_relaxed);
  return gm__vmm_serves(arena) && unused >= vmm_page(arena) && vmm_is_worth(arena, unused) && frees >= arena->ask_at;
}

/* Handles of other arenas' become spare, `bytes` of them if there are so many. */
static uint64_t vmm_reclaim_others(const gm__arena *arena, const vmm_choice *choice, uint64_t bytes) {
  uint64_t done = 0;
  gm__arena *other;
  for (uint32_t i = 0; done < bytes && (other = gm__arena_at(arena->pool, i)); i++) {
    if (other == arena || !vmm_may_lend(other)) continue;
    const uint64_t lent = vmm_reclaim_tidy(other, choice, bytes - done);
    done += lent;
    if (lent && atomic_load_explicit(&other->tally.reclaimable, memory_order_relaxed)) continue;
    other->ask_at = atomic_load_explicit(&other->tally.frees, memory_order_relaxed) + VMM_ASK_AFTER;
  }
  return done;
}

/* What is idle serves in the window before more is taken: pages of the arena itself, if they are worth it (the window
 * itself is AWAY), then those of others, of which some may be spare since the last time. False: there is none. */
static bool vmm_gather(gm__arena *arena, const gm__window *window) {
  const vmm_choice choice = {.freed_by = UINT64_MAX, .most_pages = vmm_longest_gap(window)};
  const bool alone = atomic_load_explicit(&arena->pool->arena_count, memory_order_relaxed) == 1;
  uint64_t lack = gm__sub_sat(window->unmapped, gm__pages_spare_bytes(arena->pool));
  gm__arena_lock(arena);
  const bool loose = vmm_is_worth(arena, gm__vmm_idle_bytes(arena));
  gm__arena_unlock(arena);
  if (loose) lack = gm__sub_sat(lack, vmm_reclaim_from(arena, &choice, lack));
  if (alone) return loose;
  return !lack || vmm_reclaim_others(arena, &choice, lack + window->extra) || loose;
}

/* Memory behind what the window needs. With what is extra only where nothing is idle. On failure there is no more than
 * before. */
static gm_status vmm_fill(gm__arena *arena, const gm__window *window, gm_error *err) {
  gm_pool *pool = arena->pool;
  gm__range *range = window->segment->range;
  const uint64_t made = pool->pages.made;
  const uint32_t to = vmm_gather(arena, window) ? window->to : window->reach;
  gm_status status = gm__pages_fill(pool, range, window->from, to, window->reach, err);
  while (gm__supply_is_shortage(status)) { /* or what is extra is not to be had */
    status = gm__pages_fill(pool, range, window->from, window->to, window->to, err);
    if (!gm__supply_is_shortage(status) || !vmm_reclaim(pool, arena, window->unmapped, UINT64_MAX)) break;
  }
  if (status != GM_OK) gm__pages_undo(pool, range, window->from, window->reach, made);
  return status;
}

/* A range more for the arena. */
static gm_status vmm_open_range(gm__arena *arena, gm_error *err) {
  gm_pool *pool = arena->pool;
  const gm_services *services = arena->spans.services;
  gm_memory memory;
  gm__segment *segment = gm__alloc(services, sizeof *segment);
  gm__range *range = segment ? gm__range_open(pool, &arena->mapped_pages, &memory, err) : NULL;
  gm_status status = range ? gm__supply_enter_range(pool, &memory, segment, err)
                           : GM_ERR_OUT_OF_DEVICE_MEMORY; /* of the kind that is mapped */
  if (status == GM_OK) {
    segment->range = range;
    gm__arena_lock(arena);
    if (!gm__segment_open(arena, segment)) status = GM_ERR_OUT_OF_HOST_MEMORY;
    gm__arena_unlock(arena);
    if (status == GM_OK) return GM_OK;
    gm__supply_leave_range(pool, segment);
  }
  if (range) gm__range_close(pool, range, &memory, GM_CLOSE_NORMAL);
  gm__release(services, segment, sizeof *segment);
  return gm__fail(err, status, 0, "gm_alloc", "no host memory, or no addresses, for a range of the pool");
}

static gm_status vmm_no_table(gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_alloc", "no host memory for the pool's table");
}

/* A window for the request, AWAY; 0: none, or no host memory (*status). */
static uint32_t vmm_open_window(gm__arena *arena, const gm__want *want, gm__window *window, gm_status *status,
                                gm_error *err) {
  uint32_t number = 0;
  const uint64_t granule = gm__arena_granule(arena);
  const uint64_t need = want->exact + (want->align > granule ? want->align - granule : 0);
  gm__arena_lock(arena);
  const int slot = gm__arena_slot(arena, want->stream);
  *status = GM_OK;
  if (!gm__spans_reserve(&arena->spans, GM__HOLE_SPANS) || !gm__lookup_reserve(&arena->lookup, &arena->spans)) {
    *status = vmm_no_table(err);
  } else {
    number = gm__window_open(arena, slot, need, window);
  }
  gm__arena_unlock(arena);
  return number;
}

/* The window is a hole now, as far as it was mapped. */
static uint32_t vmm_close_window(gm__arena *arena, const gm__want *want, const gm__range *range, uint32_t number) {
  uint64_t pending;
  gm__order_verdict verdict;
  gm__arena_lock(arena);
  gm__window_give(arena, range, number);
  uint32_t hole = 0, part = 0;
  if (gm__spans_reserve(&arena->spans, GM__HOLE_SPANS) && gm__lookup_reserve(&arena->lookup, &arena->spans)) {
    hole = gm__holes_find(arena, want, gm__arena_slot(arena, want->stream), GM__ORDER_READY, &pending, &verdict);
  }
  if (hole) {
    part = gm__hole_carve(arena, want, hole);
    gm__lookup_insert(&arena->lookup, &arena->spans, part);
  }
  gm__growth_publish(arena);
  gm__arena_unlock(arena);
  return part;
}

static gm_status vmm_take(gm__arena *arena, const gm__want *want, uint32_t *out, gm_error *err) {
  gm__window window;
  gm_status status;
  vmm_retry(arena);
  uint32_t number = vmm_open_window(arena, want, &window, &status, err);
  if (!number && status == GM_OK && want->exact <= gm__range_most_bytes(arena->pool)) {
    status = vmm_open_range(arena, err);
    if (status == GM_OK) number = vmm_open_window(arena, want, &window, &status, err);
  }
  if (status != GM_OK) return status;
  if (!number)
    return gm__fail(err, GM_ERR_ALLOCATION_TOO_LARGE, 0, "gm_alloc", "no range of addresses has room for it");
  status = vmm_fill(arena, &window, err);
  *out = vmm_close_window(arena, want, window.segment->range, number);
  if (*out) return GM_OK;
  return status != GM_OK ? status : vmm_no_table(err);
}

gm_status gm__vmm_take(gm__arena *arena, const gm__want *want, uint32_t *out, gm_error *err) {
  gm_pool *pool = arena->pool;
  gm__mutex_lock(&pool->pages.lock);
  const gm_status status = vmm_take(arena, want, out, err);
  gm__mutex_unlock(&pool->pages.lock);
  return status;
}

uint64_t gm__vmm_trim(gm_pool *pool, uint64_t keep_bytes, uint64_t freed_by) {
  uint64_t given = 0;
  gm__arena *arena, *first = gm__arena_at(pool, 0);
  if (!pool->pages.usable || !first) return 0;
  if (!gm__poll_lock(&pool->pages.lock, vmm_patience_ns)) return 0;
  for (uint32_t i = 0; (arena = gm__arena_at(pool, i)); i++) vmm_retry(arena);
  while (gm__pool_pooled(pool) > keep_bytes) {
    given += gm__pages_release(pool);
    const uint64_t pooled = gm__pool_pooled(pool);
    if (pooled <= keep_bytes || !vmm_reclaim(pool, first, pooled - keep_bytes, freed_by)) break;
  }
  gm__mutex_unlock(&pool->pages.lock);
  return given;
}
