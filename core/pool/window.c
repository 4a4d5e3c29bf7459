#include "core/pool/window.h"

#include "core/base/saturate.h"
#include "core/pool/growth.h"
#include "core/pool/hole.h"

/* Invariants. In a range of an arena holes, blocks and gaps follow each other; a gap is whole pages, none of them
 * mapped, and everything else is mapped. Gaps are few, and linked by `prev` and `next`, so that a window is found
 * without a look at all that is alive. No window is without a gap: holes that touch were joined before. */

static uint64_t window_page(const gm__arena *arena) { return arena->pool->pages.page_bytes; }

static uint64_t window_bytes(const gm__arena *arena, uint32_t number) {
  return gm__arena_bytes(arena, gm__arena_span(arena, number));
}

/* ---- spans of a range ---- */

static void window_link_gap(gm__arena *arena, uint32_t number) {
  gm__span *span = gm__arena_span(arena, number);
  span->state = GM__SPAN_GAP;
  span->prev = 0;
  span->next = arena->gaps;
  if (span->next) gm__arena_span(arena, span->next)->prev = number;
  arena->gaps = number;
}

static void window_unlink_gap(gm__arena *arena, const gm__span *span) {
  if (span->next) gm__arena_span(arena, span->next)->prev = span->prev;
  if (span->prev) {
    gm__arena_span(arena, span->prev)->next = span->next;
  } else {
    arena->gaps = span->next;
  }
}

void gm__window_put_gap(gm__arena *arena, uint32_t number) {
  gm__span *span = gm__arena_span(arena, number), *left = gm__arena_span(arena, span->left);
  const gm__span *right = gm__arena_span(arena, span->right);
  if (right->state == GM__SPAN_GAP) {
    span->granules += right->granules;
    window_unlink_gap(arena, right);
    gm__span_unlink(&arena->spans, span->right);
  }
  if (left->state == GM__SPAN_GAP) {
    left->granules += span->granules;
    gm__span_unlink(&arena->spans, number);
  } else {
    window_link_gap(arena, number);
  }
}

/* The first bytes of a span become one of their own, in the same state. A span was reserved. */
static uint32_t window_split(gm__arena *arena, uint32_t number, uint64_t bytes) {
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

/* What is behind a page. */
typedef enum window_page_state { WINDOW_NOTHING, WINDOW_MAPPED, WINDOW_SHUT } window_page_state;

static window_page_state window_state(const gm__arena *arena, const gm__range *range, uint64_t page) {
  if (!range->handle_of[page]) return WINDOW_NOTHING;
  return gm__page_is_shut(arena->pool, range, page) ? WINDOW_SHUT : WINDOW_MAPPED;
}

/* Bytes at the begin of the span whose pages are all alike. */
static uint64_t window_alike(const gm__arena *arena, const gm__range *range, uint32_t number,
                             window_page_state *out_state) {
  const gm__span *span = gm__arena_span(arena, number);
  const uint64_t page = window_page(arena), begin = span->address - range->address;
  const uint64_t end = begin + gm__arena_bytes(arena, span);
  uint64_t at = begin / page;
  *out_state = window_state(arena, range, at);
  while (at * page < end && window_state(arena, range, at) == *out_state) at++;
  return gm__min(at * page, end) - begin;
}

static void window_strand(gm__arena *arena, uint32_t number) {
  gm__arena_span(arena, number)->next = arena->stranded;
  arena->stranded = number;
}

void gm__window_give(gm__arena *arena, const gm__range *range, uint32_t number) {
  for (uint32_t piece = 0; piece != number;) {
    window_page_state state;
    const uint64_t alike = window_alike(arena, range, number, &state);
    piece = number;
    if (alike < window_bytes(arena, number)) {
      if (!gm__spans_reserve(&arena->spans, 1)) {
        window_strand(arena, number);
        return;
      }
      piece = window_split(arena, number, alike);
    }
    switch (state) {
      case WINDOW_NOTHING: gm__window_put_gap(arena, piece); break;
      case WINDOW_MAPPED: gm__hole_free(arena, piece, arena->lanes[gm__arena_span(arena, piece)->lane]); break;
      case WINDOW_SHUT: window_strand(arena, piece); break;
    }
  }
}

/* ---- windows ---- */

/* What can be part of a window for the slot: gaps, and holes that it may use at once. */
static bool window_counts(const gm__arena *arena, uint32_t number, int slot) {
  const gm__span *span = gm__arena_span(arena, number);
  if (span->state == GM__SPAN_GAP) return true;
  if (span->state != GM__SPAN_HOLE) return false;
  return span->lane == GM__LANE_IDLE || (span->lane == slot && arena->lanes[slot]->ordered);
}

/* Leave out what is more than needed of the gaps at its ends. False: it does not need its first span. */
static bool window_shrink(const gm__arena *arena, gm__window *window, uint64_t need) {
  const uint64_t page = window_page(arena);
  uint64_t excess = (window->bytes - need) / page * page;
  if (gm__arena_span(arena, window->last)->state == GM__SPAN_GAP) {
    window->drop = gm__min(excess, window_bytes(arena, window->last));
    excess -= window->drop;
  }
  if (window->first != window->last && gm__arena_span(arena, window->first)->state == GM__SPAN_GAP) {
    window->skip = gm__min(excess, window_bytes(arena, window->first));
    if (window->skip == window_bytes(arena, window->first)) return false;
  }
  window->unmapped -= window->skip + window->drop;
  window->bytes -= window->skip + window->drop;
  return true;
}

/* The least window that begins with the span; false: there is none. */
static bool window_at(const gm__arena *arena, uint32_t first, int slot, uint64_t need, gm__window *out) {
  *out = (gm__window){.segment = arena->homes[gm__arena_span(arena, first)->home], .first = first};
  for (uint32_t at = first; at && window_counts(arena, at, slot); at = gm__arena_span(arena, at)->right) {
    const uint64_t bytes = window_bytes(arena, at);
    out->bytes += bytes;
    if (gm__arena_span(arena, at)->state == GM__SPAN_GAP) out->unmapped += bytes;
    out->last = at;
    if (out->bytes >= need) return window_shrink(arena, out, need);
  }
  return false;
}

/* The one with the fewest pages to map; of those the smallest, and the first by address. */
static bool window_is_better(const gm__arena *arena, const gm__window *one, const gm__window *other) {
  if (!other->segment) return true;
  if (one->unmapped != other->unmapped) return one->unmapped < other->unmapped;
  if (one->bytes != other->bytes) return one->bytes < other->bytes;
  return gm__arena_span(arena, one->first)->address < gm__arena_span(arena, other->first)->address;
}

/* Of neighbours that all count the first, if that gap is the first gap of them; 0: another one is. */
static uint32_t window_run(const gm__arena *arena, uint32_t gap, int slot) {
  uint32_t first = gap;
  for (uint32_t at = gm__arena_span(arena, gap)->left; window_counts(arena, at, slot);
       at = gm__arena_span(arena, at)->left) {
    if (gm__arena_span(arena, at)->state == GM__SPAN_GAP) return 0;
    first = at;
  }
  return first;
}

static bool window_find(const gm__arena *arena, int slot, uint64_t need, gm__window *out) {
  *out = (gm__window){.segment = NULL};
  for (uint32_t gap = arena->gaps; gap; gap = gm__arena_span(arena, gap)->next) {
    uint32_t at = window_run(arena, gap, slot);
    for (gm__window window; at && window_counts(arena, at, slot); at = gm__arena_span(arena, at)->right) {
      if (window_at(arena, at, slot, need, &window)) {
        if (window_is_better(arena, &window, out)) *out = window;
      } else if (window.bytes < need) {
        break; /* nor is there enough from any span behind */
      }
    }
  }
  return out->segment != NULL;
}

/* At the end of a range as much may be mapped as the pool grows by. */
static void window_extend(const gm__arena *arena, gm__window *window) {
  if (gm__arena_span(arena, window->last)->right || window->drop == 0) return;
  const uint64_t wish = gm__growth_pages(arena, window->unmapped);
  const uint64_t more = gm__sub_sat(wish, window->unmapped) / window_page(arena) * window_page(arena);
  window->extra = gm__min(more, window->drop);
  window->drop -= window->extra;
  window->bytes += window->extra;
}

/* What the window does not need of the gaps at its ends stays there. */
static void window_leave(gm__arena *arena, gm__window *window) {
  if (window->drop) {
    const uint32_t last = window_split(arena, window->last, window_bytes(arena, window->last) - window->drop);
    gm__arena_span(arena, last)->state = GM__SPAN_AWAY;
    if (window->first == window->last) window->first = last;
    window->last = last;
  }
  if (window->skip) window_link_gap(arena, window_split(arena, window->first, window->skip));
}

/* A part of the window leaves the list that it is in, and is one with the first; the span behind it. */
static uint32_t window_join(gm__arena *arena, uint32_t number, uint32_t first) {
  gm__span *span = gm__arena_span(arena, first);
  const gm__span *part = gm__arena_span(arena, number);
  const uint32_t right = part->right;
  if (part->state == GM__SPAN_GAP) window_unlink_gap(arena, part);
  if (part->state == GM__SPAN_HOLE) {
    gm__heap_take(&arena->spans, &arena->lanes[part->lane]->heap, number);
    if (part->lane != GM__LANE_IDLE) span->lane = part->lane;
    if (part->seq > span->seq) span->seq = part->seq;
  }
  if (number == first) return right;
  span->granules += part->granules;
  gm__span_unlink(&arena->spans, number);
  return right;
}

/* The spans of the window become one that is AWAY. */
static uint32_t window_seize(gm__arena *arena, gm__window *window) {
  window_leave(arena, window);
  const uint32_t first = window->first, last = window->last;
  gm__span *span = gm__arena_span(arena, first);
  if (span->state != GM__SPAN_HOLE) span->lane = GM__LANE_IDLE;
  for (uint32_t at = first, done = 0; done != last;) {
    done = at;
    at = window_join(arena, at, first);
  }
  span->state = GM__SPAN_AWAY;
  return first;
}

/* The pages that the span lies in. */
static void window_touch(const gm__arena *arena, gm__window *window, const gm__span *span) {
  const uint64_t page = window_page(arena), begin = span->address - window->segment->range->address;
  window->from = (uint32_t)(begin / page);
  window->reach = (uint32_t)((begin + gm__arena_bytes(arena, span) + page - 1) / page);
  window->to = window->reach - (uint32_t)(window->extra / page);
}

uint32_t gm__window_open(gm__arena *arena, int slot, uint64_t need, gm__window *out) {
  if (!window_find(arena, slot, need, out)) return 0;
  window_extend(arena, out);
  const uint32_t number = window_seize(arena, out);
  window_touch(arena, out, gm__arena_span(arena, number));
  return number;
}
