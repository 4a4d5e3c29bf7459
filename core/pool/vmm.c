#include "core/pool/vmm.h"

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/pool/growth.h"
#include "core/pool/hole.h"

/* Invariants. In a range of an arena holes, blocks and gaps follow each other; a gap is whole pages, none of them
 * mapped, and everything else is mapped. Only who holds the pool's `pages.lock` maps, unmaps, or changes gaps. The
 * driver is called for spans that are AWAY: taken out of the holes first, given back as holes and gaps, as they are
 * then, afterwards. Nothing is unmapped while a stream may use it: only idle holes give handles up. */

static uint64_t vmm_page(const gm__arena *arena) { return arena->pool->pages.page_bytes; }

static uint64_t vmm_bytes(const gm__arena *arena, uint32_t number) {
  return gm__arena_bytes(arena, gm__arena_span(arena, number));
}

bool gm__vmm_serves(const gm__arena *arena) { return arena->pool->pages.usable && arena->common; }

/* ---- spans of a range ---- */

/* A piece that is AWAY becomes a gap, one with the gaps beside it. */
static void vmm_put_gap(gm__arena *arena, uint32_t number) {
  gm__span *span = gm__arena_span(arena, number), *left = gm__arena_span(arena, span->left);
  const gm__span *right = gm__arena_span(arena, span->right);
  span->state = GM__SPAN_GAP;
  if (right->state == GM__SPAN_GAP) {
    span->granules += right->granules;
    gm__span_unlink(&arena->spans, span->right);
  }
  if (left->state == GM__SPAN_GAP) {
    left->granules += span->granules;
    gm__span_unlink(&arena->spans, number);
  }
}

/* The first bytes of a span become one of their own, in the same state. A span was reserved. */
static uint32_t vmm_split(gm__arena *arena, uint32_t number, uint64_t bytes) {
  const uint32_t front = gm__spans_take(&arena->spans);
  gm__span *span = gm__arena_span(arena, number), *piece = gm__arena_span(arena, front);
  const uint32_t check = piece->check;
  *piece = *span;
  piece->check = check;
  piece->granules = (uint32_t)(bytes >> arena->shift);
  gm__span_insert(&arena->spans, span->left, front, number);
  span->address += bytes;
  span->granules -= piece->granules;
  return front;
}

/* Bytes at the begin of the span that are all mapped, or all not. */
static uint64_t vmm_alike(const gm__arena *arena, const gm__range *range, uint32_t number, bool *out_mapped) {
  const gm__span *span = gm__arena_span(arena, number);
  const uint64_t page = vmm_page(arena), begin = span->address - range->address;
  const uint64_t end = begin + gm__arena_bytes(arena, span);
  uint64_t at = begin / page;
  *out_mapped = range->handle_of[at] != 0;
  while (at * page < end && (range->handle_of[at] != 0) == *out_mapped) at++;
  return gm__min(at * page, end) - begin;
}

/* A span that is AWAY goes back as what it is now: holes of its lane, and gaps. Without host memory for so many pieces
 * the rest stays away. */
static void vmm_give(gm__arena *arena, const gm__range *range, uint32_t number) {
  for (uint32_t piece = 0; piece != number;) {
    bool mapped;
    const uint64_t alike = vmm_alike(arena, range, number, &mapped);
    piece = number;
    if (alike < vmm_bytes(arena, number)) {
      if (!gm__spans_reserve(&arena->spans, 1)) return;
      piece = vmm_split(arena, number, alike);
    }
    if (mapped) {
      gm__hole_free(arena, piece, arena->lanes[gm__arena_span(arena, piece)->lane]);
    } else {
      vmm_put_gap(arena, piece);
    }
  }
}

/* ---- windows ---- */

typedef struct vmm_window {
  gm__segment *segment;
  uint32_t first, last;     /* spans, holes and gaps */
  uint64_t skip, drop;      /* bytes of gap that are not needed: of the first, at its begin; of the last, at its end */
  uint64_t unmapped, bytes; /* what has to be mapped; all of it */
  uint32_t from, to;        /* pages, once it was taken */
} vmm_window;

/* What can be part of a window for the slot: gaps, and holes that it may use at once. */
static bool vmm_counts(const gm__arena *arena, uint32_t number, int slot) {
  const gm__span *span = gm__arena_span(arena, number);
  if (span->state == GM__SPAN_GAP) return true;
  if (span->state != GM__SPAN_HOLE) return false;
  return span->lane == GM__LANE_IDLE || (span->lane == slot && arena->lanes[slot]->ordered);
}

/* Leave out what is more than needed of the gaps at its ends. False: it does not need its first span. */
static bool vmm_shrink(const gm__arena *arena, vmm_window *window, uint64_t need) {
  const uint64_t page = vmm_page(arena);
  uint64_t excess = (window->bytes - need) / page * page;
  if (gm__arena_span(arena, window->last)->state == GM__SPAN_GAP) {
    window->drop = gm__min(excess, vmm_bytes(arena, window->last));
    excess -= window->drop;
  }
  if (window->first != window->last && gm__arena_span(arena, window->first)->state == GM__SPAN_GAP) {
    window->skip = gm__min(excess, vmm_bytes(arena, window->first));
    if (window->skip == vmm_bytes(arena, window->first)) return false;
  }
  window->unmapped -= window->skip + window->drop;
  window->bytes -= window->skip + window->drop;
  return true;
}

/* The least window that begins with the span; false: there is none. */
static bool vmm_window_at(const gm__arena *arena, gm__segment *segment, uint32_t first, int slot, uint64_t need,
                          vmm_window *out) {
  *out = (vmm_window){.segment = segment, .first = first};
  for (uint32_t at = first; at && vmm_counts(arena, at, slot); at = gm__arena_span(arena, at)->right) {
    const uint64_t bytes = vmm_bytes(arena, at);
    out->bytes += bytes;
    if (gm__arena_span(arena, at)->state == GM__SPAN_GAP) out->unmapped += bytes;
    out->last = at;
    if (out->bytes >= need) return vmm_shrink(arena, out, need);
  }
  return false;
}

static bool vmm_is_better(const vmm_window *one, const vmm_window *other) {
  if (one->unmapped != other->unmapped) return one->unmapped < other->unmapped;
  return one->bytes < other->bytes;
}

/* The window with the fewest pages to map; of those the smallest. */
static bool vmm_find(const gm__arena *arena, int slot, uint64_t need, vmm_window *out) {
  bool found = false;
  for (gm__segment *segment = arena->segments; segment; segment = segment->next) {
    if (!segment->range) continue;
    for (uint32_t at = gm__arena_span(arena, segment->edge)->right; at; at = gm__arena_span(arena, at)->right) {
      vmm_window window;
      if (!vmm_counts(arena, at, slot) || !vmm_window_at(arena, segment, at, slot, need, &window)) continue;
      if (found && !vmm_is_better(&window, out)) continue;
      *out = window;
      found = true;
    }
  }
  return found;
}

/* At the end of a range as much is mapped as the pool grows by, so that it need not grow again soon. */
static void vmm_extend(const gm__arena *arena, vmm_window *window) {
  if (gm__arena_span(arena, window->last)->right || window->drop == 0) return;
  const uint64_t wish = gm__growth_step(arena->pool, window->unmapped);
  const uint64_t more = wish > window->unmapped ? (wish - window->unmapped) / vmm_page(arena) * vmm_page(arena) : 0;
  const uint64_t taken = gm__min(more, window->drop);
  window->drop -= taken;
  window->unmapped += taken;
  window->bytes += taken;
}

/* The spans of the window become one that is AWAY. Two spans were reserved. */
static uint32_t vmm_seize(gm__arena *arena, const vmm_window *window) {
  uint32_t first = window->first, last = window->last;
  if (window->drop) {
    last = vmm_split(arena, last, vmm_bytes(arena, last) - window->drop);
    if (first == window->last) first = last;
  }
  if (window->skip) vmm_split(arena, first, window->skip);
  gm__span *span = gm__arena_span(arena, first);
  uint8_t lane = GM__LANE_IDLE;
  for (uint32_t at = first;; at = gm__arena_span(arena, at)->right) {
    const gm__span *part = gm__arena_span(arena, at);
    if (part->state == GM__SPAN_HOLE) {
      if (part->lane != GM__LANE_IDLE) lane = part->lane;
      if (part->seq > span->seq) span->seq = part->seq;
      gm__heap_take(&arena->spans, &arena->lanes[part->lane]->heap, at);
    }
    if (at == last) break;
  }
  while (first != last) {
    const uint32_t right = span->right;
    span->granules += gm__arena_span(arena, right)->granules;
    if (right == last) last = first;
    gm__span_unlink(&arena->spans, right);
  }
  span->state = GM__SPAN_AWAY;
  span->lane = lane;
  return first;
}

/* ---- giving handles up ---- */

/* The next handle at or behind *page that lies wholly within [*page, to), and its pages; 0: none. *page is behind it
 * afterwards. Looks at the range alone: the pages' lock need not be held. */
static uint32_t vmm_next_handle(const gm__range *range, uint64_t *page, uint64_t to, uint64_t *out_pages) {
  while (*page < to) {
    const uint64_t first = *page;
    const uint32_t number = range->handle_of[first];
    while (*page < range->page_count && range->handle_of[*page] == number) *page += 1;
    const bool whole = *page <= to && (first == 0 || range->handle_of[first - 1] != number);
    if (!number || !whole) continue;
    *out_pages = *page - first;
    return number;
  }
  return 0;
}

static bool vmm_is_idle(const gm__span *span) { return span->state == GM__SPAN_HOLE && span->lane == GM__LANE_IDLE; }

/* The whole pages within a span. */
static void vmm_span_pages(const gm__arena *arena, const gm__range *range, const gm__span *span, uint64_t *from,
                           uint64_t *to) {
  const uint64_t page = vmm_page(arena), begin = span->address - range->address;
  *from = (begin + page - 1) / page;
  *to = (begin + gm__arena_bytes(arena, span)) / page;
}

uint64_t gm__vmm_idle_bytes(const gm__arena *arena, const gm__segment *segment) {
  uint64_t bytes = 0;
  for (uint32_t at = gm__arena_span(arena, segment->edge)->right; at; at = gm__arena_span(arena, at)->right) {
    const gm__span *span = gm__arena_span(arena, at);
    uint64_t from, to, pages;
    if (!vmm_is_idle(span)) continue;
    vmm_span_pages(arena, segment->range, span, &from, &to);
    while (vmm_next_handle(segment->range, &from, to, &pages)) bytes += pages * vmm_page(arena);
  }
  return bytes;
}

/* An idle hole, freed last by that time, with whole handles in it, AWAY now, and its pages; 0: none. */
static uint32_t vmm_seize_idle(gm__arena *arena, const gm__segment *segment, uint64_t freed_by, uint64_t *out_from,
                               uint64_t *out_to) {
  const gm__range *range = segment->range;
  for (uint32_t at = gm__arena_span(arena, segment->edge)->right; at; at = gm__arena_span(arena, at)->right) {
    gm__span *span = gm__arena_span(arena, at);
    uint64_t from, to, pages;
    if (!vmm_is_idle(span) || !gm__freed_by(span->seq, freed_by)) continue;
    vmm_span_pages(arena, range, span, &from, &to);
    *out_from = from;
    *out_to = to;
    if (!vmm_next_handle(range, &from, to, &pages)) continue;
    gm__heap_take(&arena->spans, &arena->lanes[GM__LANE_IDLE]->heap, at);
    span->state = GM__SPAN_AWAY;
    return at;
  }
  return 0;
}

/* Unmap handles in [from, to) until there are `bytes` of them; what was unmapped. */
static uint64_t vmm_unmap(const gm__arena *arena, gm__range *range, uint64_t from, uint64_t to, uint64_t bytes) {
  uint64_t done = 0, pages;
  uint32_t number;
  while (done < bytes && (number = vmm_next_handle(range, &from, to, &pages))) {
    if (!gm__pages_unmap(arena->pool, range, number)) break;
    done += pages * vmm_page(arena);
  }
  return done;
}

static uint64_t vmm_reclaim_range(gm__arena *arena, gm__segment *segment, uint64_t bytes, uint64_t freed_by) {
  uint64_t done = 0, from, to;
  while (done < bytes) {
    gm__arena_lock(arena);
    const uint32_t number = vmm_seize_idle(arena, segment, freed_by, &from, &to);
    gm__arena_unlock(arena);
    if (!number) break;
    const uint64_t one = vmm_unmap(arena, segment->range, from, to, bytes - done);
    gm__arena_lock(arena);
    vmm_give(arena, segment->range, number);
    gm__arena_unlock(arena);
    if (!one) break;
    done += one;
  }
  return done;
}

/* The arena's next range from that number on; NULL: no more. A range stays as long as its pool, other segments do not.
 */
static gm__segment *vmm_next_range(gm__arena *arena, uint32_t *home) {
  gm__segment *segment = NULL;
  gm__arena_lock(arena);
  while (!segment && ++*home < arena->home_count) {
    segment = arena->homes[*home];
    if (segment && !segment->range) segment = NULL;
  }
  gm__arena_unlock(arena);
  return segment;
}

static uint64_t vmm_reclaim_arena(gm__arena *arena, uint64_t bytes, uint64_t freed_by) {
  uint64_t done = 0;
  uint32_t home = 0;
  gm__arena_lock(arena);
  gm__growth_tidy(arena, 0);
  gm__arena_unlock(arena);
  for (gm__segment *segment; done < bytes && (segment = vmm_next_range(arena, &home));) {
    done += vmm_reclaim_range(arena, segment, bytes - done, freed_by);
  }
  gm__arena_lock(arena);
  gm__growth_publish(arena);
  gm__arena_unlock(arena);
  return done;
}

/* Handles become spare, at least `bytes` of them if there are so many in holes that were freed last by that time: those
 * of the arena first. */
static uint64_t vmm_reclaim(gm_pool *pool, const gm__arena *first, uint64_t bytes, uint64_t freed_by) {
  uint64_t done = 0;
  const uint32_t count = atomic_load_explicit(&pool->arena_count, memory_order_acquire);
  for (uint32_t i = 0; i < count && done < bytes; i++) {
    done += vmm_reclaim_arena(gm__arena_at(pool, (first->number + i) % count), bytes - done, freed_by);
  }
  return done;
}

/* ---- growing ---- */

static gm_status vmm_fill(const gm__arena *arena, const vmm_window *window, gm_error *err) {
  gm_pool *pool = arena->pool;
  gm__range *range = window->segment->range;
  const uint32_t from = window->from, to = window->to;
  gm_status status = gm__pages_fill(pool, range, from, to, err);
  while (gm__supply_is_shortage(status) && vmm_reclaim(pool, arena, window->unmapped, UINT64_MAX)) {
    status = gm__pages_fill(pool, range, from, to, err);
  }
  return status;
}

/* A range more for the arena. */
static gm_status vmm_open_range(gm__arena *arena, gm_error *err) {
  gm_pool *pool = arena->pool;
  const gm_services *services = arena->spans.services;
  gm_memory memory;
  gm__segment *segment = gm__alloc(services, sizeof *segment);
  gm__range *range = segment ? gm__range_open(pool, &memory, err) : NULL;
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

/* The pages that the span lies in. */
static void vmm_touch(const gm__arena *arena, vmm_window *window, const gm__span *span) {
  const uint64_t page = vmm_page(arena), begin = span->address - window->segment->range->address;
  window->from = (uint32_t)(begin / page);
  window->to = (uint32_t)((begin + gm__arena_bytes(arena, span) + page - 1) / page);
}

/* A window for the request, AWAY; 0: none, or no host memory (*status). */
static uint32_t vmm_open_window(gm__arena *arena, const gm__want *want, vmm_window *window, gm_status *status) {
  uint32_t number = 0;
  const uint64_t granule = gm__arena_granule(arena);
  const uint64_t need = want->exact + (want->align > granule ? want->align - granule : 0);
  gm__arena_lock(arena);
  const int slot = gm__arena_slot(arena, want->stream);
  *status = GM_OK;
  if (!gm__spans_reserve(&arena->spans, GM__HOLE_SPANS) || !gm__lookup_reserve(&arena->lookup, &arena->spans)) {
    *status = GM_ERR_OUT_OF_HOST_MEMORY;
  } else if (vmm_find(arena, slot, need, window)) {
    vmm_extend(arena, window);
    number = vmm_seize(arena, window);
    vmm_touch(arena, window, gm__arena_span(arena, number));
  }
  gm__arena_unlock(arena);
  return number;
}

/* The window is a hole now, as far as it was mapped. */
static uint32_t vmm_close_window(gm__arena *arena, const gm__want *want, const gm__range *range, uint32_t number) {
  uint64_t pending;
  gm__order_verdict verdict;
  gm__arena_lock(arena);
  vmm_give(arena, range, number);
  uint32_t hole = 0, part = 0;
  if (gm__spans_reserve(&arena->spans, GM__HOLE_SPANS) && gm__lookup_reserve(&arena->lookup, &arena->spans)) {
    hole = gm__holes_find(arena, want, gm__arena_slot(arena, want->stream), GM__ORDER_READY, &pending, &verdict);
  }
  if (hole) {
    part = gm__hole_carve(arena, want, hole);
    gm__lookup_insert(&arena->lookup, gm__arena_span(arena, part)->address, part);
  }
  gm__growth_publish(arena);
  gm__arena_unlock(arena);
  return part;
}

static gm_status vmm_take(gm__arena *arena, const gm__want *want, uint32_t *out, gm_error *err) {
  vmm_window window;
  gm_status status;
  uint32_t number = vmm_open_window(arena, want, &window, &status);
  if (!number && status == GM_OK) {
    status = vmm_open_range(arena, err);
    if (status == GM_OK) number = vmm_open_window(arena, want, &window, &status);
  }
  if (status == GM_OK && !number) status = GM_ERR_ALLOCATION_TOO_LARGE;
  if (status != GM_OK) return gm__fail(err, status, 0, "gm_alloc", "no window of addresses for the request");
  status = vmm_fill(arena, &window, err);
  *out = vmm_close_window(arena, want, window.segment->range, number);
  if (*out) return GM_OK;
  return status != GM_OK
             ? status
             : gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_alloc", "no host memory for the pool's table");
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
  gm__arena *first = gm__arena_at(pool, 0);
  if (!pool->pages.usable || !first) return 0;
  gm__mutex_lock(&pool->pages.lock);
  while (gm__pool_pooled(pool) > keep_bytes) {
    given += gm__pages_release(pool);
    const uint64_t pooled = gm__pool_pooled(pool);
    if (pooled <= keep_bytes || !vmm_reclaim(pool, first, pooled - keep_bytes, freed_by)) break;
  }
  given += gm__pages_release(pool);
  gm__mutex_unlock(&pool->pages.lock);
  return given;
}
