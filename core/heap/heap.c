#include "core/heap/heap.h"

#include "core/arena/reclaim.h"
#include "core/base/saturate.h"

uint64_t gm__heap_limit(gm__heap *heap) {
  const uint64_t cap = gm__claim_cap(&heap->provider.claim);
  const uint64_t room = gm__room_left(&heap->provider.claim, true), used = gm__claim_used(&heap->provider.claim);
  return gm__min(gm__add_sat(used, room), cap);
}

uint64_t gm__heap_most(gm__heap *heap) {
  const uint64_t limit = gm__heap_limit(heap);
  if (limit != UINT64_MAX || heap->provider.has_upstream) return limit;
  return gm__add_sat(gm__claim_used(&heap->provider.claim), gm__room_left_physical(&heap->device->room, true));
}

uint64_t gm__heap_live(const gm__heap *heap) {
  gm_stats stats = {.struct_size = sizeof stats};
  gm__arenas_add(&heap->arenas, &stats);
  return heap->dedicated.live + stats.stream_hits + stats.global_hits + stats.misses - stats.frees;
}

gm_location gm__heap_location(const gm__heap *heap, const gm_memory *memory) {
  const gm_device *device = heap->device;
  if (memory->type >= device->type_count) return GM_LOCATION_DEVICE;
  const uint32_t flags = device->types[memory->type].flags;
  if (flags & (GM_MEMORY_DEVICE_LOCAL | GM_MEMORY_MANAGED)) return GM_LOCATION_DEVICE;
  return device->info.unified && !(flags & GM_MEMORY_PINNED) ? GM_LOCATION_DEVICE : GM_LOCATION_PINNED;
}

gm_stats gm__heap_stats(gm__heap *heap) {
  gm_stats arenas = {.struct_size = sizeof arenas}, stats;
  if (!gm__context_forked(heap->device->ctx)) gm__arenas_look(&heap->arenas);
  gm__arenas_add(&heap->arenas, &arenas);
  gm__stats_snapshot(&heap->provider.stats, &arenas, &stats);
  if (heap->provider.captures) stats.reclaimable_bytes = 0; /* no trim gives any back */
  return stats;
}
