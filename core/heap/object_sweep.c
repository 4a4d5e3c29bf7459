#include "core/heap/object_sweep.h"

#include "core/arena/arena.h"
#include "core/base/saturate.h"
#include "core/provider/native_objects.h"

/* Invariant: an object is destroyed only when all work has passed that was ever submitted on the memory of its range.
 * The last uses of all chunks in the range say so: a chunk keeps those of its earlier owners. A live block may have
 * submitted work that no last use tells, but it can use only the objects that it asked for. */

bool gm__object_sweep_is_due(const gm__heap *heap) {
  return atomic_load(&heap->provider.object_count) >= gm__max(heap->provider.sweep_at, GM__OBJECTS_LEAST);
}

/* Marks the objects that reach into the bytes [begin, end) and are not free to go. `owner`: of the live block there; 0:
 * nobody has the bytes. `passed`: no earlier work is left on them. */
static void sweep_mark(struct gm__native_objects *objects, uint64_t begin, uint64_t end, uint64_t owner, bool passed) {
  for (uint32_t i = 0; i < objects->count && objects->list[i].offset < end; i++) {
    gm__native_object *object = &objects->list[i];
    if (object->offset + object->bytes > begin) object->busy |= !passed || (owner && object->owner == owner);
  }
}

static void sweep_begin(struct gm__native_objects *objects) {
  for (uint32_t i = 0; i < objects->count; i++) objects->list[i].busy = false;
}

/* ---- dedicated blocks ---- */

static void sweep_allocation(gm__heap *heap, gm__allocation *allocation, gm__native_leaving *leaving) {
  const bool live = allocation->state == GM__ALLOCATION_LIVE, pooled = allocation->state == GM__ALLOCATION_POOLED;
  gm__last_use use = allocation->cold.use;
  use.has_point = false; /* the allocation keeps its point */
  const bool passed = (live || pooled) && !gm__order_settle(&heap->dedicated.order, &use);
  const uint64_t owner = live ? gm__native_owner(allocation->index, allocation->check) : 0;
  sweep_begin(allocation->objects);
  sweep_mark(allocation->objects, 0, UINT64_MAX, owner, passed);
  gm__native_objects_take(&heap->provider, allocation, leaving);
}

static void sweep_dedicated(gm__heap *heap, gm__native_leaving *leaving) {
  uint32_t cursor = 0;
  gm__mutex_lock(&heap->provider.lock);
  gm__order_refresh(&heap->dedicated.order, heap->dedicated.order.used);
  for (gm__allocation *allocation; (allocation = gm__allocation_next(&heap->provider.allocations, &cursor));) {
    if (allocation->objects && allocation->state != GM__ALLOCATION_SEGMENT) sweep_allocation(heap, allocation, leaving);
  }
  gm__mutex_unlock(&heap->provider.lock);
}

/* ---- arenas ---- */

static void sweep_chunk(gm__arena *arena, uint32_t number, const gm__allocation *allocation) {
  const gm__chunk *chunk = gm__arena_chunk(arena, number);
  const uint64_t begin = chunk->address - allocation->address, end = begin + gm__arena_bytes(arena, chunk);
  const bool live = gm__chunk_is(chunk) == GM__CHUNK_LIVE, away = gm__chunk_is(chunk) == GM__CHUNK_AWAY;
  gm__last_use use = gm__arena_last_use(arena, number);
  use.has_point = false;
  const bool passed = !away && !gm__order_settle(&arena->order, &use);
  const uint64_t owner = live ? gm__native_owner(gm__arena_block(arena, number).number, chunk->check) : 0;
  sweep_mark(allocation->objects, begin, end, owner, passed);
}

/* REQUIRES: arena lock, provider lock. */
static void sweep_segment(gm__heap *heap, gm__arena *arena, const gm__segment *segment, gm__native_leaving *leaving) {
  if (!segment->allocation->objects || segment->range) return;
  sweep_begin(segment->allocation->objects);
  for (uint32_t at = gm__arena_chunk(arena, segment->edge)->right; at; at = gm__arena_chunk(arena, at)->right) {
    sweep_chunk(arena, at, segment->allocation);
  }
  gm__native_objects_take(&heap->provider, segment->allocation, leaving);
}

static void sweep_arena(gm__heap *heap, gm__arena *arena, gm__native_leaving *leaving) {
  gm__order_refresh(&arena->order, arena->order.used);
  gm__mutex_lock(&heap->provider.lock);
  for (const gm__segment *segment = arena->segments; segment; segment = segment->next) {
    sweep_segment(heap, arena, segment, leaving);
  }
  gm__mutex_unlock(&heap->provider.lock);
}

void gm__object_sweep(gm__heap *heap) {
  gm__native_leaving leaving = {.count = 0};
  sweep_dedicated(heap, &leaving);
  for (gm__arena *arena = NULL; (arena = gm__arena_next(&heap->arenas, arena));) sweep_arena(heap, arena, &leaving);
  gm__mutex_lock(&heap->provider.lock);
  heap->provider.sweep_at = (uint32_t)gm__min(2 * (uint64_t)atomic_load(&heap->provider.object_count), UINT32_MAX);
  gm__mutex_unlock(&heap->provider.lock);
  gm__native_objects_return(&heap->provider, &leaving);
}
