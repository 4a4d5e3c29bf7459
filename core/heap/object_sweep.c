#include "core/heap/object_sweep.h"

#include "core/arena/arena.h"
#include "core/base/saturate.h"
#include "core/provider/native_objects.h"

/* Invariant: an object is destroyed only after the block that asked for it last is gone, and when one of two things
 * holds. All work has passed that was ever submitted on the memory of its range: the last uses of all chunks there say
 * so, for a chunk keeps those of its earlier owners. Or all streams have passed a time at which that block was gone.
 * A live block may have submitted work that no last use tells, but it can use only the objects that it asked for.
 *
 * Some objects stay that might go. An engine goes through the same objects in each of its steps. If the oldest went,
 * each would go before its turn came again. So every n-th one stays, and what was found again stays first. */

/* Objects of which some stay: `stay` of `count`, evenly. */
typedef struct sweep_share {
  uint64_t count, stay, sum;
} sweep_share;

typedef struct object_sweep {
  gm__heap *heap;
  bool notes; /* the first walk, before points are recorded: it notes which objects' blocks are gone */
  uint32_t live;
  sweep_share again, once; /* objects whose blocks are gone: asked for again since the last sweep, and not */
  gm__native_leaving leaving;
} object_sweep;

bool gm__object_sweep_is_due(const gm__heap *heap) {
  return atomic_load(&heap->provider.object_count) >= gm__max(heap->provider.sweep_at, UINT64_C(2) * GM__OBJECTS_LEAST);
}

static void share_out(object_sweep *sweep) {
  sweep->again.stay = gm__min(sweep->again.count, GM__OBJECTS_LEAST);
  sweep->once.stay = gm__min(sweep->once.count, GM__OBJECTS_LEAST - sweep->again.stay);
}

/* True for `stay` of `count` calls. */
static bool share_next(sweep_share *share) {
  share->sum += share->stay;
  if (share->sum < share->count || !share->stay) return false;
  share->sum -= share->count;
  return true;
}

/* ---- the objects of one allocation ---- */

static void sweep_begin(struct gm__native_objects *objects) {
  for (uint32_t i = 0; i < objects->count; i++) objects->list[i].busy = objects->list[i].live = false;
}

/* Marks the objects that reach into the bytes [begin, end). `owner`: of the live block there; 0: nobody has the bytes.
 * `passed`: no earlier work is left on them. */
static void sweep_mark(struct gm__native_objects *objects, uint64_t begin, uint64_t end, uint64_t owner, bool passed) {
  for (uint32_t i = 0; i < objects->count && objects->list[i].offset < end; i++) {
    gm__native_object *object = &objects->list[i];
    if (object->offset + object->bytes <= begin) continue;
    object->busy |= !passed;
    object->live |= owner && object->owner == owner;
  }
}

static void sweep_age(const gm__order *order, gm__native_object *object) {
  if (object->live) object->gone_at = 0;
  if (!object->live && !object->gone_at) object->gone_at = gm__order_now(order);
}

/* The first walk. */
static void sweep_note(object_sweep *sweep, const gm__native_object *object) {
  sweep_share *share = object->again ? &sweep->again : &sweep->once;
  share->count += !object->live;
}

/* The second walk. */
static void sweep_judge(object_sweep *sweep, const gm__order *order, gm__native_object *object) {
  sweep->live += object->live;
  if (object->live) {
    object->busy = true;
    return;
  }
  const bool stays = share_next(object->again ? &sweep->again : &sweep->once);
  object->busy = stays || (object->busy && !gm__order_has_passed(order, object->gone_at));
  object->again = false;
}

static void sweep_end(object_sweep *sweep, const gm__order *order, gm__allocation *allocation) {
  struct gm__native_objects *objects = allocation->objects;
  for (uint32_t i = 0; i < objects->count; i++) {
    sweep_age(order, &objects->list[i]);
    if (sweep->notes) sweep_note(sweep, &objects->list[i]);
    if (!sweep->notes) sweep_judge(sweep, order, &objects->list[i]);
  }
  if (!sweep->notes) gm__native_objects_take(&sweep->heap->provider, allocation, &sweep->leaving);
}

/* ---- dedicated blocks ---- */

static void sweep_allocation(object_sweep *sweep, gm__allocation *allocation) {
  gm__order *order = &sweep->heap->dedicated.order;
  const bool live = allocation->state == GM__ALLOCATION_LIVE, pooled = allocation->state == GM__ALLOCATION_POOLED;
  gm__last_use use = allocation->cold.use;
  use.has_point = false; /* the allocation keeps its point */
  const bool passed = (live || pooled) && !gm__order_settle(order, &use);
  const uint64_t owner = live ? gm__native_owner(allocation->index, allocation->check) : 0;
  sweep_begin(allocation->objects);
  sweep_mark(allocation->objects, 0, UINT64_MAX, owner, passed);
  sweep_end(sweep, order, allocation);
}

static void sweep_allocations(object_sweep *sweep) {
  uint32_t cursor = 0;
  for (gm__allocation *allocation; (allocation = gm__allocation_next(&sweep->heap->provider.allocations, &cursor));) {
    if (allocation->objects && allocation->state != GM__ALLOCATION_SEGMENT) sweep_allocation(sweep, allocation);
  }
}

static void sweep_dedicated(object_sweep *sweep) {
  gm__heap *heap = sweep->heap;
  gm__mutex_lock(&heap->provider.lock);
  if (!sweep->notes) gm__order_refresh(&heap->dedicated.order, heap->dedicated.order.used);
  sweep_allocations(sweep);
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
static void sweep_segment(object_sweep *sweep, gm__arena *arena, const gm__segment *segment) {
  if (!segment->allocation->objects || segment->range) return;
  sweep_begin(segment->allocation->objects);
  for (uint32_t at = gm__arena_chunk(arena, segment->edge)->right; at; at = gm__arena_chunk(arena, at)->right) {
    sweep_chunk(arena, at, segment->allocation);
  }
  sweep_end(sweep, &arena->order, segment->allocation);
}

/* REQUIRES: arena lock. */
static void sweep_arena(object_sweep *sweep, gm__arena *arena) {
  if (!sweep->notes) gm__order_refresh(&arena->order, arena->order.used);
  gm__mutex_lock(&sweep->heap->provider.lock);
  for (const gm__segment *segment = arena->segments; segment; segment = segment->next) {
    sweep_segment(sweep, arena, segment);
  }
  gm__mutex_unlock(&sweep->heap->provider.lock);
}

static void sweep_walk(object_sweep *sweep, bool notes) {
  gm__heap *heap = sweep->heap;
  sweep->notes = notes;
  sweep_dedicated(sweep);
  for (gm__arena *arena = NULL; (arena = gm__arena_next(&heap->arenas, arena));) sweep_arena(sweep, arena);
}

void gm__object_sweep(gm__heap *heap) {
  object_sweep sweep = {.heap = heap};
  sweep_walk(&sweep, true);
  share_out(&sweep);
  sweep_walk(&sweep, false);
  gm__mutex_lock(&heap->provider.lock);
  const uint64_t more = gm__max(sweep.live, GM__OBJECTS_LEAST), count = atomic_load(&heap->provider.object_count);
  heap->provider.sweep_at = (uint32_t)gm__min(count + more, UINT32_MAX);
  gm__mutex_unlock(&heap->provider.lock);
  gm__native_objects_return(&heap->provider, &sweep.leaving);
}
