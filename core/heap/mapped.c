#include "core/heap/mapped.h"

#include "core/arena/arena.h"

static gm__mapping *mapped_pop(gm__cold *cold) {
  gm__mapping *mapping = cold->mappings;
  if (mapping) cold->mappings = mapping->next;
  return mapping;
}

static gm__mapping *mapped_dedicated(gm__heap *heap, gm_memory *memory) {
  uint32_t cursor = 0;
  gm__mapping *mapping = NULL;
  gm__mutex_lock(&heap->provider.lock);
  for (gm__allocation *allocation;
       !mapping && (allocation = gm__allocation_next(&heap->provider.allocations, &cursor));) {
    mapping = mapped_pop(&allocation->cold);
    if (mapping) *memory = allocation->memory;
  }
  gm__mutex_unlock(&heap->provider.lock);
  return mapping;
}

/* REQUIRES: arena lock. */
static gm__mapping *mapped_chunk(gm__arena *arena, gm_memory *memory) {
  size_t cursor = 0;
  uint64_t number, cold;
  while (gm__map_next(&arena->cold, &cursor, &number, &cold)) {
    gm__mapping *mapping = mapped_pop((gm__cold *)(uintptr_t)cold);
    if (!mapping) continue;
    const gm__chunk *chunk = gm__arena_chunk(arena, (uint32_t)number);
    *memory = arena->segment_table[chunk->segment_index]->allocation->memory;
    return mapping;
  }
  return NULL;
}

gm__mapping *gm__mapped_take(gm__heap *heap, gm_memory *memory) {
  gm__mapping *mapping = mapped_dedicated(heap, memory);
  gm__arena *arena;
  for (uint32_t i = 0; !mapping && (arena = gm__arena_at(&heap->arenas, i)); i++) {
    gm__arena_lock(arena);
    mapping = mapped_chunk(arena, memory);
    gm__arena_unlock(arena);
  }
  return mapping;
}
