#include "core/pool/segment.h"

#include "core/base/alloc.h"
#include "core/base/saturate.h"
#include "core/pool/hole.h"
#include "core/pool/window.h"

/* Invariants. A segment begins with an edge, behind which its spans tile its memory; a span knows the number of its
 * segment in the arena (`home`), which serves again when the segment has gone. */

enum {
  SEGMENT_LEAST_ALIGN = 4096, /* of a segment's memory */
  SEGMENT_LEAST_GRANULE = 256,
};

static uint64_t segment_round_up_power(uint64_t at_least, uint64_t value) {
  while (at_least < value) at_least *= 2;
  return at_least;
}

void gm__segment_rules_init(gm__segment_rules *rules, const gm_device *device) {
  *rules = (gm__segment_rules){.all_local = true, .all_visible = true};
  rules->granule = segment_round_up_power(SEGMENT_LEAST_GRANULE, device->info.alignment);
  for (uint32_t i = 0; i < device->type_count; i++) {
    const gm_memory_type *type = &device->types[i];
    rules->granule = segment_round_up_power(rules->granule, type->atom_bytes);
    rules->all_local &= device->info.unified || type->flags & GM_MEMORY_DEVICE_LOCAL;
    rules->all_visible &= (type->flags & (GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_POINTER)) != 0;
  }
}

gm__memory_kind gm__kind_of(const gm__segment_rules *rules, const gm__want *want) {
  const uint64_t least = gm__max(SEGMENT_LEAST_ALIGN, rules->granule);
  gm__memory_kind kind = {.align = (uint32_t)gm__max(want->align, least),
                          .usage = want->usage,
                          .flags = want->flags & (GM_HOST_VISIBLE | GM_COMMIT),
                          .must_be = want->must_be,
                          .beside_device = want->beside_device};
  if (rules->all_visible) kind.flags &= ~(uint32_t)GM_HOST_VISIBLE;
  if (rules->all_local && !kind.beside_device) kind.must_be = GM_DEVICE_LOCAL;
  return kind;
}

bool gm__kind_serves(const gm__memory_kind *kind, const gm__memory_kind *asked) {
  return kind->must_be <= asked->must_be && !(asked->usage & ~kind->usage) && !(asked->flags & ~kind->flags) &&
         kind->beside_device == asked->beside_device && kind->align >= asked->align;
}

/* A number for the segment; 0 without host memory. */
static uint32_t segment_number(gm__arena *arena) {
  for (uint32_t i = 1; i < arena->home_count; i++) {
    if (!arena->homes[i]) return i;
  }
  if (arena->home_count < arena->home_capacity) return arena->home_count++;
  const uint32_t capacity = arena->home_capacity ? arena->home_capacity * 2 : 16;
  const size_t size = sizeof *arena->homes;
  if (!gm__grow(arena->spans.services, &arena->homes, arena->home_capacity * size, capacity * size)) return 0;
  if (!arena->home_capacity) arena->home_count = 1;
  arena->home_capacity = capacity;
  return arena->home_count++;
}

static void segment_link(gm__arena *arena, gm__segment *segment) {
  segment->arena = arena;
  segment->prev = NULL;
  segment->next = arena->segments;
  if (segment->next) segment->next->prev = segment;
  arena->segments = segment;
  arena->homes[segment->home] = segment;
}

bool gm__segment_open(gm__arena *arena, gm__segment *segment) {
  if (!gm__spans_reserve(&arena->spans, 2) || !(segment->home = segment_number(arena))) return false;
  segment_link(arena, segment);
  segment->edge = gm__spans_take(&arena->spans);
  const uint32_t hole = gm__spans_take(&arena->spans);
  gm__span *edge = gm__arena_span(arena, segment->edge), *span = gm__arena_span(arena, hole);
  edge->state = GM__SPAN_EDGE;
  edge->granules = 0;
  edge->left = 0;
  span->address = segment->node->address;
  span->granules = (uint32_t)(segment->node->bytes >> arena->shift);
  span->seq = segment->freed_at;
  span->home = segment->home;
  span->lane = GM__LANE_IDLE;
  gm__span_insert(&arena->spans, segment->edge, hole, 0);
  if (segment->range) {
    gm__window_put_gap(arena, hole);
  } else {
    gm__hole_free(arena, hole, arena->lanes[GM__LANE_IDLE]);
  }
  return true;
}

bool gm__segment_is_zeroed(const gm__segment *segment) {
  if (!segment->range) return segment->zeroed;
  return atomic_load_explicit(&segment->range->zeroed, memory_order_relaxed);
}

bool gm__segment_is_idle(const gm__arena *arena, const gm__segment *segment) {
  const gm__span *first = gm__arena_span(arena, gm__arena_span(arena, segment->edge)->right);
  return !segment->range && first->state == GM__SPAN_HOLE && first->lane == GM__LANE_IDLE && first->right == 0;
}

bool gm__segment_is_idle_since(const gm__arena *arena, const gm__segment *segment, uint64_t freed_by) {
  return gm__segment_is_idle(arena, segment) &&
         gm__freed_by(gm__arena_span(arena, gm__arena_span(arena, segment->edge)->right)->seq, freed_by);
}

void gm__segment_close(gm__arena *arena, gm__segment *segment) {
  const uint32_t hole = gm__arena_span(arena, segment->edge)->right;
  gm__heap_take(&arena->spans, &arena->lanes[GM__LANE_IDLE]->heap, hole);
  segment->freed_at = gm__arena_span(arena, hole)->seq;
  gm__spans_give(&arena->spans, hole);
  gm__spans_give(&arena->spans, segment->edge);
  arena->homes[segment->home] = NULL;
  if (segment->next) segment->next->prev = segment->prev;
  if (segment->prev) {
    segment->prev->next = segment->next;
  } else {
    arena->segments = segment->next;
  }
}
