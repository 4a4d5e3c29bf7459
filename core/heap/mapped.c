#include "core/heap/mapped.h"

#include "core/arena/arena.h"

static gm__mapping *mapped_pop(gm__cold *cold) {
  gm__mapping *mapping = cold->mappings;
  if (mapping) cold->mappings = mapping->next;
  return mapping;
}

/* A place moves on only behind a block that has no mapping more. */
static gm__mapping *mapped_dedicated(gm__heap *heap, gm__mapped_place *place, gm_memory *memory) {
  gm__mapping *mapping = NULL;
  gm__mutex_lock(&heap->provider.lock);
  for (uint32_t next = place->allocation; !mapping; place->allocation = mapping ? place->allocation : next) {
    gm__allocation *allocation = gm__allocation_next(&heap->provider.allocations, &next);
    if (!allocation) break;
    mapping = mapped_pop(&allocation->cold);
    if (mapping) *memory = allocation->memory;
  }
  gm__mutex_unlock(&heap->provider.lock);
  return mapping;
}

/* REQUIRES: arena lock. */
static gm__mapping *mapped_chunk(gm__arena *arena, gm__mapped_place *place, gm_memory *memory) {
  uint64_t number, cold;
  for (size_t next = place->cold; gm__map_next(&arena->cold, &next, &number, &cold); place->cold = next) {
    gm__mapping *mapping = mapped_pop((gm__cold *)(uintptr_t)cold);
    if (!mapping) continue;
    const gm__chunk *chunk = gm__arena_chunk(arena, (uint32_t)number);
    *memory = arena->segment_table[chunk->segment_index]->allocation->memory;
    return mapping;
  }
  return NULL;
}

gm__mapping *gm__mapped_take(gm__heap *heap, gm__mapped_place *place, gm_memory *memory) {
  gm__mapping *mapping = mapped_dedicated(heap, place, memory);
  for (gm__arena *arena; !mapping && (arena = gm__arena_at(&heap->arenas, place->arena));) {
    gm__arena_lock(arena);
    mapping = mapped_chunk(arena, place, memory);
    gm__arena_unlock(arena);
    if (mapping) break;
    place->arena++;
    place->cold = 0;
  }
  return mapping;
}
