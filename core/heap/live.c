#include "core/heap/live.h"

#include "core/provider/address_map.h"

static void live_of_allocation(gm__heap *heap, gm__allocation *allocation, gm__live *out) {
  *out = (gm__live){.heap = heap,
                    .allocation = allocation,
                    .tag = allocation->tag,
                    .stream = allocation->asked_on,
                    .offset = allocation->offset,
                    .requested = allocation->requested,
                    .block = gm__allocation_block(allocation),
                    .order = &heap->dedicated.order,
                    .cold = &allocation->cold};
}

static void live_of_chunk(gm__heap *heap, gm__arena *arena, uint32_t number, gm__live *out) {
  gm__chunk *chunk = gm__arena_chunk(arena, number);
  gm__allocation *allocation = arena->segment_table[chunk->segment_index]->allocation;
  *out = (gm__live){.heap = heap,
                    .arena = arena,
                    .allocation = allocation,
                    .chunk = number,
                    .tag = chunk->tag,
                    .stream = gm__arena_asked_on(arena, chunk),
                    .offset = chunk->address - allocation->address,
                    .requested = gm__arena_bytes(arena, chunk) - chunk->slack,
                    .block = gm__arena_block(arena, number),
                    .order = &arena->order,
                    .cold = gm__arena_cold(arena, number)};
}

/* Answers for the arena's live chunk `number`, and keeps the lock. Without one, 0, it unlocks the arena. REQUIRES:
 * arena lock. */
static bool live_keep(gm__heap *heap, gm__arena *arena, uint32_t number, gm__live *out) {
  if (number) {
    live_of_chunk(heap, arena, number, out);
  } else {
    gm__arena_unlock(arena);
  }
  return number != 0;
}

static bool live_open_chunk(gm__heap *heap, const gm_block *block, gm__live *out) {
  gm__arena *arena = gm__arena_of_block(&heap->arenas, block);
  if (!arena) return false;
  gm__arena_lock(arena);
  return live_keep(heap, arena, gm__arena_find_check(arena, block), out);
}

bool gm__live_open_raw(gm__heap *heap, const gm_block *block, gm__live *out) {
  if (block->number & GM__ARENA_BLOCK) return live_open_chunk(heap, block, out);
  gm__mutex_lock(&heap->provider.lock);
  gm__allocation *allocation = gm__allocation_find(&heap->provider.allocations, block, false);
  if (allocation) {
    live_of_allocation(heap, allocation, out);
  } else {
    gm__mutex_unlock(&heap->provider.lock);
  }
  return allocation != NULL;
}

void gm__live_open_grant(gm__heap *heap, const gm__grant *grant, gm__live *out) {
  gm__allocation *allocation = grant->allocation;
  if (allocation) {
    gm__mutex_lock(&heap->provider.lock);
    *out = (gm__live){.heap = heap, .allocation = allocation, .cold = &allocation->cold};
    return;
  }
  gm__arena *arena = grant->arena;
  gm__arena_lock(arena);
  *out = (gm__live){.heap = heap,
                    .arena = arena,
                    .allocation = arena->segment_table[gm__arena_chunk(arena, grant->chunk)->segment_index]->allocation,
                    .chunk = grant->chunk,
                    .cold = gm__arena_cold(arena, grant->chunk)};
}

/* Shows of a guarded block what the caller sees, the bytes between the zones. False: the caller has freed the block. */
static bool live_see(gm__live *live) {
  const gm__guarded *guard = live->cold ? &live->cold->guard : NULL;
  if (!guard || !guard->owner) return true;
  live->block.address += guard->front;
  live->block.bytes = guard->usable;
  live->offset += guard->front;
  return !guard->withheld;
}

static bool live_is(const gm__live *live, const gm_block *block) {
  if (!live->arena && !live->heap->checked && !live->heap->guarded) return true;
  return live->block.address == block->address && live->block.bytes == block->bytes &&
         live->block.memory == block->memory;
}

bool gm__live_open(gm__heap *heap, const gm_block *block, gm__live *out) {
  if (!gm__live_open_raw(heap, block, out)) return false;
  if (live_see(out) && live_is(out, block)) return true;
  gm__live_close(out);
  return false;
}

void gm__live_note_use(const gm__live *live) {
  if (!live->arena) gm__dedicated_note_use(&live->heap->dedicated, live->allocation);
}

gm__last_use gm__live_last_use(const gm__live *live) {
  return live->cold ? live->cold->use : gm__arena_last_use(live->arena, live->chunk);
}

void gm__live_close(const gm__live *live) {
  if (live->arena) {
    gm__arena_unlock(live->arena);
  } else {
    gm__mutex_unlock(&live->heap->provider.lock);
  }
}

bool gm__live_make_cold(gm__live *live) {
  if (!live->cold) live->cold = gm__arena_make_cold(live->arena, live->chunk);
  return live->cold != NULL;
}

int gm__live_slot(const gm__live *live, gm_stream *stream) {
  return live->arena ? gm__arena_slot(live->arena, stream) : gm__order_slot_of(live->order, stream);
}

int gm__live_free_slot(const gm__live *live, gm_stream *stream) {
  return live->arena ? gm__arena_free_slot(live->arena, stream) : gm__order_free_slot(live->order, stream);
}

/* Looks at all chunks of the segment, for want of host memory for a table of all addresses. */
static uint32_t live_walk(const gm__arena *arena, uint64_t address) {
  uint32_t number = 0;
  for (const gm__segment *segment = arena->segments; segment && !number; segment = segment->next) {
    if (address - segment->allocation->address >= segment->allocation->bytes) continue;
    number = gm__arena_chunk(arena, segment->edge)->right;
    while (number && address - gm__arena_chunk(arena, number)->address >=
                         gm__arena_bytes(arena, gm__arena_chunk(arena, number))) {
      number = gm__arena_chunk(arena, number)->right;
    }
  }
  return number;
}

/* The live chunk of the arena that contains the address; 0: none. REQUIRES: arena lock. */
static uint32_t live_chunk_at(gm__arena *arena, uint64_t address) {
  uint32_t number = gm__lookup_find(&arena->lookup, &arena->chunks, address);
  if (!number) {
    const bool quick = gm__lookup_open_inside(&arena->lookup, &arena->chunks, arena->shift);
    number = quick ? gm__lookup_find_inside(&arena->lookup, &arena->chunks, address) : live_walk(arena, address);
  }
  return number && gm__chunk_is(gm__arena_chunk(arena, number)) == GM__CHUNK_LIVE ? number : 0;
}

/* The arena that carves the allocation; NULL: none does. `allocation` may be NULL. REQUIRES: provider lock. */
static gm__arena *live_arena_of(const gm__allocation *allocation) {
  return allocation && allocation->state == GM__ALLOCATION_SEGMENT ? allocation->segment->arena : NULL;
}

gm__arena *gm__live_arena_at(gm__heap *heap, uint64_t address) {
  gm__mutex_lock(&heap->provider.lock);
  gm__arena *arena = live_arena_of(gm__address_map_find(&heap->provider.addresses, address));
  gm__mutex_unlock(&heap->provider.lock);
  return arena;
}

static bool live_at_raw(gm__heap *heap, uint64_t address, gm__live *out) {
  gm__mutex_lock(&heap->provider.lock);
  gm__allocation *allocation = gm__address_map_find(&heap->provider.addresses, address);
  gm__arena *arena = live_arena_of(allocation);
  if (allocation && allocation->state == GM__ALLOCATION_LIVE) {
    live_of_allocation(heap, allocation, out);
    return true;
  }
  gm__mutex_unlock(&heap->provider.lock);
  if (!arena) return false;
  gm__arena_lock(arena);
  return live_keep(heap, arena, live_chunk_at(arena, address), out);
}

bool gm__live_at(gm__heap *heap, uint64_t address, gm__live *out) {
  if (!live_at_raw(heap, address, out)) return false;
  if (live_see(out) && address - out->block.address < out->block.bytes) return true;
  gm__live_close(out);
  return false;
}
