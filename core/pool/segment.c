#include "core/pool/segment.h"

#include "core/base/alloc.h"
#include "core/pool/pool.h"

/* Invariants. The parts of a segment tile it; each is a node: live, away, or a hole (pooled). A hole is in the group of
 * the streams that may still use it: none, one, or several. Two holes that touch and wait for the same streams are
 * joined, whenever either of them changes, so a segment nobody uses ends as one hole. A hole that no stream uses is
 * joined with one that a stream uses only if no other stream is known to the pool, or before the pool would grow:
 * otherwise a free on one stream would take memory away from the others. */

enum {
  SEGMENT_IDLE = 0,           /* group of holes that no stream is known to use */
  SEGMENT_MIXED = 65,         /* of several; between them: slot + 1 */
  SEGMENT_LEAST_ALIGN = 4096, /* of a segment's memory */
  SEGMENT_LEAST_GRANULE = 256,
};

static gm__node *segment_node(gm__span *span) { return (gm__node *)(void *)span; }

static uint64_t segment_round_up_power(uint64_t at_least, uint64_t value) {
  while (at_least < value) at_least *= 2;
  return at_least;
}

void gm__segments_init(gm__segments *segments, const gm_device *device, const gm_services *services) {
  *segments = (gm__segments){.services = services, .all_local = true, .all_visible = true};
  segments->granule = segment_round_up_power(SEGMENT_LEAST_GRANULE, device->info.alignment);
  for (uint32_t i = 0; i < device->type_count; i++) {
    const gm_memory_type *type = &device->types[i];
    segments->granule = segment_round_up_power(segments->granule, type->atom_bytes);
    segments->all_local &= device->info.unified || type->flags & GM_MEMORY_DEVICE_LOCAL;
    segments->all_visible &= (type->flags & (GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_POINTER)) != 0;
  }
}

/* ---- kinds ---- */

static void segment_kind_release(gm__segments *segments, gm__segment_kind *kind) {
  for (int group = 0; group < GM__HEAP_GROUPS; group++) {
    gm__release(segments->services, kind->heap.groups[group], sizeof(gm__heap_bins));
  }
  gm__release(segments->services, kind, sizeof *kind);
}

void gm__segments_clear(gm__segments *segments) {
  for (gm__segment *segment = segments->first, *next; segment; segment = next) {
    next = segment->next;
    gm__release(segments->services, segment->map_memory, segment->map_size);
    gm__release(segments->services, segment, sizeof *segment);
  }
  for (gm__segment_kind *kind = segments->kinds, *next; kind; kind = next) {
    next = kind->next;
    segment_kind_release(segments, kind);
  }
  segments->first = NULL;
  segments->kinds = NULL;
}

/* What matters of a request here. */
static gm__segment_kind segment_kind_of(const gm__segments *segments, const gm__want *want) {
  gm__segment_kind kind = {.align = want->align > SEGMENT_LEAST_ALIGN ? want->align : SEGMENT_LEAST_ALIGN,
                           .usage = want->usage,
                           .flags = want->flags & (GM_HOST_VISIBLE | GM_COMMIT),
                           .must_be = want->must_be,
                           .beside_device = want->beside_device};
  if (segments->all_visible) kind.flags &= ~(uint32_t)GM_HOST_VISIBLE;
  if (segments->all_local && !kind.beside_device) kind.must_be = GM_DEVICE_LOCAL;
  return kind;
}

/* Can memory of the kind serve what needs `asked`? */
static bool segment_kind_serves(const gm__segment_kind *kind, const gm__segment_kind *asked) {
  return kind->must_be <= asked->must_be && !(asked->usage & ~kind->usage) && !(asked->flags & ~kind->flags) &&
         kind->beside_device == asked->beside_device && kind->align >= asked->align;
}

static bool segment_has_group(const gm__segments *segments, gm__segment_kind *kind, uint32_t group) {
  gm__heap_bins **bins = &kind->heap.groups[group];
  if (!*bins) *bins = gm__alloc(segments->services, sizeof **bins);
  return *bins != NULL;
}

gm__want gm__segments_want(const gm_pool *pool, const gm__want *want) {
  gm__segment_kind asked = segment_kind_of(&pool->segments, want);
  gm__want whole = *want;
  whole.align = asked.align;
  whole.flags = asked.flags;
  whole.must_be = asked.must_be;
  return whole;
}

gm__segment_kind *gm__segments_kind(gm_pool *pool, const gm__want *want, const gm_memory *memory) {
  gm__segments *segments = &pool->segments;
  gm__segment_kind is = segment_kind_of(segments, want);
  uint32_t flags = memory->type < pool->device->type_count ? pool->device->types[memory->type].flags : 0;
  if (flags & (GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_POINTER)) is.flags |= GM_HOST_VISIBLE;
  if (flags & GM_MEMORY_DEVICE_LOCAL) is.must_be = GM_DEVICE_LOCAL;
  for (gm__segment_kind *kind = segments->kinds; kind; kind = kind->next) {
    if (segment_kind_serves(kind, &is) && segment_kind_serves(&is, kind)) return kind;
  }
  gm__segment_kind *kind = gm__alloc(segments->services, sizeof *kind);
  if (!kind) return NULL;
  *kind = is;
  if (!segment_has_group(segments, kind, SEGMENT_IDLE) || !segment_has_group(segments, kind, SEGMENT_MIXED)) {
    segment_kind_release(segments, kind);
    return NULL;
  }
  kind->next = segments->kinds;
  segments->kinds = kind;
  return kind;
}

bool gm__segments_fit(const gm_pool *pool, const gm__want *want, const gm__node *hole) {
  gm__segment_kind asked = segment_kind_of(&pool->segments, want);
  return segment_kind_serves(hole->segment->kind, &asked) && gm__span_fits(&hole->span, want->rounded, want->align);
}

/* ---- holes ---- */

/* The group of a hole; that of several streams where there is no host memory for its own. */
static uint32_t segment_group(const gm_pool *pool, const gm__node *hole) {
  uint64_t streams = hole->streams;
  if (!streams) return SEGMENT_IDLE;
  if (streams & (streams - 1)) return SEGMENT_MIXED;
  uint32_t group = (uint32_t)__builtin_ctzll(streams) + 1;
  return segment_has_group(&pool->segments, hole->segment->kind, group) ? group : SEGMENT_MIXED;
}

/* Keep the books on segments that a trim could give back. */
static void segment_set_idle(gm_pool *pool, gm__segment *segment, bool idle) {
  if (segment->idle == idle) return;
  uint64_t bytes = segment->node->bytes;
  segment->idle = idle;
  if (idle) {
    gm__stats_count(&pool->stats.reclaimable_bytes, bytes);
  } else {
    gm__stats_uncount(&pool->stats.reclaimable_bytes, bytes);
  }
  if (pool->has_upstream || !gm__device_is_charged(pool->device, &segment->node->memory)) return;
  gm__device_note_pooled(pool->device, idle ? (int64_t)bytes : -(int64_t)bytes);
}

/* The order of two joined holes: the later free counts, and its point. */
static void segment_join_order(gm_pool *pool, gm__node *left, gm__node *right) {
  bool takes_right = left->streams == right->streams ? right->freed_at > left->freed_at : right->streams != 0;
  if (!takes_right) {
    gm__order_drop_point(&pool->order, right);
    return;
  }
  gm__order_drop_point(&pool->order, left);
  left->streams = right->streams;
  left->freed_at = right->freed_at;
  left->freed_on = right->freed_on;
  left->point = right->point;
  left->point_slot = right->point_slot;
  left->has_point = right->has_point;
  right->has_point = false;
}

/* `left` swallows its right neighbour; neither is in a bin. */
static void segment_join(gm_pool *pool, gm__node *left) {
  gm__node *right = segment_node(left->span.right);
  segment_join_order(pool, left, right);
  gm__span_map_leave(&left->segment->map, &right->span);
  gm__span_join(&left->span);
  gm__node_give(&pool->nodes, right);
}

static bool segment_joins(const gm__span *neighbour, const gm__node *hole, bool mixes) {
  if (!neighbour || !neighbour->hole) return false;
  uint64_t streams = ((const gm__node *)(const void *)neighbour)->streams;
  return streams == hole->streams || (mixes && (!streams || !hole->streams));
}

/* A part becomes a hole. `mixes`: idle neighbours may become the streams' that use it. More than one neighbour on a
 * side can be due: a hole whose streams have closed or passed since stays unjoined, in its old group, until it is
 * touched. */
static void segment_put(gm_pool *pool, gm__node *hole, bool mixes) {
  gm__segment *segment = hole->segment;
  gm__heap *heap = &segment->kind->heap;
  while (segment_joins(hole->span.left, hole, mixes)) {
    hole = segment_node(hole->span.left);
    gm__heap_take(heap, &hole->span);
    segment_join(pool, hole);
  }
  while (segment_joins(hole->span.right, hole, mixes)) {
    gm__heap_take(heap, hole->span.right);
    segment_join(pool, hole);
  }
  hole->state = GM__NODE_POOLED;
  hole->bytes = hole->span.bytes;
  gm__heap_put(heap, &hole->span, segment_group(pool, hole));
  bool whole = !hole->span.left && !hole->span.right;
  segment_set_idle(pool, segment, whole && !hole->streams);
}

void gm__segments_put(gm_pool *pool, gm__node *part) {
  bool one_stream = !(pool->order.used & (pool->order.used - 1));
  pool->pooled += part->span.bytes;
  pool->segments.frees++;
  segment_put(pool, part, part->streams && one_stream);
}

/* ---- streams ---- */

/* Take the holes out that moved to another group, or all of them, linked by span.next. */
static gm__span *segment_lift(gm_pool *pool, gm__heap *heap, uint32_t group, bool all) {
  gm__span *chain = NULL, *next;
  for (gm__span *span = gm__heap_drain(heap, group); span; span = next) {
    next = span->next;
    gm__node *node = segment_node(span);
    gm__order_settle(&pool->order, node);
    if (!all && segment_group(pool, node) == group) {
      gm__heap_put(heap, span, group);
      continue;
    }
    span->next = chain;
    chain = span;
  }
  return chain;
}

static void segment_put_all(gm_pool *pool, gm__span *chain, bool mixes) {
  for (gm__span *next; chain; chain = next) {
    gm__node *node = segment_node(chain);
    next = chain->next;
    segment_put(pool, node, mixes && node->streams);
  }
}

void gm__segments_settle(gm_pool *pool) {
  for (gm__segment_kind *kind = pool->segments.kinds; kind; kind = kind->next) {
    for (uint32_t group = SEGMENT_IDLE + 1; group < GM__HEAP_GROUPS; group++) {
      const gm__heap_bins *bins = kind->heap.groups[group];
      if (bins && bins->top) segment_put_all(pool, segment_lift(pool, &kind->heap, group, false), false);
    }
  }
}

void gm__segments_gather(gm_pool *pool, int slot) {
  if (slot == GM__ORDER_HOST) return;
  for (gm__segment_kind *kind = pool->segments.kinds; kind; kind = kind->next) {
    segment_put_all(pool, segment_lift(pool, &kind->heap, (uint32_t)slot + 1, true), true);
  }
}

/* ---- searching ---- */

typedef struct segment_search {
  const gm__want *want;
  int slot;
  gm__order_verdict worst;
  gm__node *best;
  gm__order_verdict verdict;
} segment_search;

/* Is there a hole in the group that is better than what was found? */
static void segment_look(const gm_pool *pool, segment_search *search, const gm__heap *heap, uint32_t group) {
  gm__span *span = gm__heap_find(heap, group, search->want->rounded, search->want->align);
  if (!span) return;
  gm__node *node = segment_node(span);
  gm__order_verdict verdict = gm__order_judge(&pool->order, node, search->slot, search->want->insert);
  if (verdict > search->worst) return;
  if (search->best && search->verdict < verdict) return;
  if (search->best && search->verdict == verdict && search->best->span.bytes <= span->bytes) return;
  search->best = node;
  search->verdict = verdict;
}

/* The streams of the groups that have holes. */
static uint64_t segment_streams(const gm_pool *pool, const gm__heap *heap) {
  uint64_t streams = 0;
  for (uint32_t group = SEGMENT_IDLE + 1; group < SEGMENT_MIXED; group++) {
    const gm__heap_bins *bins = heap->groups[group];
    if (bins && bins->top) streams |= UINT64_C(1) << (group - 1);
  }
  const gm__heap_bins *mixed = heap->groups[SEGMENT_MIXED];
  return mixed && mixed->top ? pool->order.used : streams;
}

static void segment_look_in(const gm_pool *pool, segment_search *search, const gm__heap *heap) {
  uint32_t own = search->slot == GM__ORDER_HOST ? SEGMENT_IDLE : (uint32_t)search->slot + 1;
  if (own != SEGMENT_IDLE) segment_look(pool, search, heap, own);
  segment_look(pool, search, heap, SEGMENT_IDLE);
  if (search->best || search->worst == GM__ORDER_READY) return;
  segment_look(pool, search, heap, SEGMENT_MIXED);
  if (search->worst < GM__ORDER_OTHERS_WAIT) return;
  for (uint32_t group = SEGMENT_IDLE + 1; group < SEGMENT_MIXED; group++) {
    if (group != own) segment_look(pool, search, heap, group);
  }
}

gm__node *gm__segments_find(gm_pool *pool, const gm__want *want, int slot, gm__order_verdict worst,
                            uint64_t *out_pending, gm__order_verdict *out_verdict) {
  gm__segment_kind asked = segment_kind_of(&pool->segments, want);
  segment_search search = {.want = want, .slot = slot, .worst = worst};
  for (gm__segment_kind *kind = pool->segments.kinds; kind && !search.best; kind = kind->next) {
    if (segment_kind_serves(kind, &asked)) segment_look_in(pool, &search, &kind->heap);
  }
  if (search.best) {
    *out_verdict = search.verdict;
    return search.best;
  }
  for (gm__segment_kind *kind = pool->segments.kinds; kind; kind = kind->next) {
    if (segment_kind_serves(kind, &asked)) *out_pending |= segment_streams(pool, &kind->heap);
  }
  return NULL;
}

/* ---- carving ---- */

/* A new node for the first `bytes` of the hole, with its order but for the point. */
static gm__node *segment_cut(gm_pool *pool, gm__node *hole, uint64_t bytes) {
  gm__node *part = gm__node_take(&pool->nodes);
  if (!part) return NULL;
  gm__segment *segment = hole->segment;
  part->segment = segment;
  part->memory = segment->node->memory;
  part->align = segment->node->align;
  part->usage = segment->node->usage;
  part->must_be = segment->node->must_be;
  part->committed = segment->node->committed;
  part->streams = hole->streams;
  part->freed_at = hole->freed_at;
  part->freed_on = hole->freed_on;
  gm__heap_cut(&segment->kind->heap, &hole->span, bytes, &part->span);
  hole->bytes = hole->span.bytes;
  gm__span_map_cut(&segment->map, &part->span, &hole->span);
  return part;
}

/* Leave what comes before the first aligned byte of the hole as a hole of its own. */
static bool segment_pad(gm_pool *pool, gm__node *hole, uint64_t align) {
  uint64_t pad = gm__span_pad(&hole->span, align);
  if (pad == 0) return true;
  gm__node *front = segment_cut(pool, hole, pad);
  if (!front) return false;
  front->state = GM__NODE_POOLED;
  front->bytes = pad;
  gm__heap_put(&hole->segment->kind->heap, &front->span, hole->span.group);
  return true;
}

gm__node *gm__segments_carve(gm_pool *pool, const gm__want *want, gm__node *hole) {
  gm__segment *segment = hole->segment;
  gm__heap *heap = &segment->kind->heap;
  gm__node *part = NULL;
  segment_set_idle(pool, segment, false);
  if (segment_pad(pool, hole, want->align)) {
    part = hole;
    if (hole->span.bytes > want->rounded) {
      part = segment_cut(pool, hole, want->rounded);
    } else {
      gm__heap_take(heap, &hole->span);
    }
  }
  if (!part) { /* as it was */
    gm__heap_take(heap, &hole->span);
    segment_put(pool, hole, false);
    return NULL;
  }
  part->state = GM__NODE_AWAY;
  part->address = part->span.address;
  part->bytes = part->span.bytes;
  part->offset = part->address - segment->node->address;
  pool->pooled -= part->bytes;
  return part;
}

gm__node *gm__segment_part(const gm__segment *segment, uint64_t address) {
  return segment_node(gm__span_map_find(&segment->map, address));
}

/* ---- segments as a whole ---- */

void gm__segment_open(gm_pool *pool, gm__segment *segment, gm__node *hole) {
  gm__node *node = segment->node;
  gm__segments *segments = &pool->segments;
  node->state = GM__NODE_SEGMENT;
  node->segment = segment;
  gm__span_map_init(&segment->map, node->address, node->bytes, segment->map_memory);
  hole->segment = segment;
  hole->memory = node->memory;
  hole->align = node->align;
  hole->usage = node->usage;
  hole->must_be = node->must_be;
  hole->committed = node->committed;
  hole->address = node->address;
  hole->span = (gm__span){.address = node->address, .bytes = node->bytes};
  gm__span_map_open(&segment->map, &hole->span);
  segment->next = segments->first;
  if (segment->next) segment->next->prev = segment;
  segments->first = segment;
  gm__segments_put(pool, hole);
}

gm__node *gm__segment_close(gm_pool *pool, gm__segment *segment) {
  gm__segments *segments = &pool->segments;
  gm__node *memory = segment->node;
  gm__node *hole = gm__segment_part(segment, memory->address);
  segment_set_idle(pool, segment, false);
  pool->pooled -= hole->span.bytes;
  gm__heap_take(&segment->kind->heap, &hole->span);
  gm__order_drop_point(&pool->order, hole);
  gm__node_give(&pool->nodes, hole);
  if (segment->next) segment->next->prev = segment->prev;
  if (segment->prev) {
    segment->prev->next = segment->next;
  } else {
    segments->first = segment->next;
  }
  memory->segment = NULL;
  gm__release(segments->services, segment->map_memory, segment->map_size);
  gm__release(segments->services, segment, sizeof *segment);
  return memory;
}
