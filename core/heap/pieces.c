#include "core/heap/pieces.h"

#include "core/arena/free_chunks.h"
#include "core/arena/quick_flush.h"
#include "core/arena/settle.h"

enum { PIECES_MEMORY_SHIFT = 32 }; /* see gm__arena_memory */

static gm__arena *pieces_arena(const gm__heap *heap, uint64_t memory) {
  const uint64_t number = memory >> PIECES_MEMORY_SHIFT;
  return number && number <= GM__ARENA_SET_ARENAS ? gm__arena_at(&heap->arenas, (uint32_t)number - 1) : NULL;
}

static gm__piece_place pieces_place(const gm__arena *arena, const gm__segment *segment) {
  const gm__allocation *allocation = segment->allocation;
  const uint64_t address = allocation->address, lowest_bit = address & (0 - address);
  return (gm__piece_place){.memory = (uint64_t)(arena->number + 1) << PIECES_MEMORY_SHIFT | segment->segment_index,
                           .address = address,
                           .bytes = allocation->bytes,
                           .align = segment->range || !address ? UINT64_MAX : lowest_bit,
                           .group = arena->common ? 0 : arena->number + 1,
                           .edge = segment->edge,
                           .paged = segment->range != NULL};
}

/* The first segment of the arena whose number is higher. REQUIRES: arena lock */
static const gm__segment *pieces_segment(const gm__arena *arena, uint32_t index) {
  for (index++; index < arena->segment_capacity; index++) {
    if (arena->segment_table[index]) return arena->segment_table[index];
  }
  return NULL;
}

bool gm__pieces_next_place(gm__heap *heap, uint64_t memory, gm__piece_place *out) {
  const uint64_t first = memory >> PIECES_MEMORY_SHIFT;
  gm__arena *arena;
  bool found = false;
  for (uint32_t i = first ? (uint32_t)first - 1 : 0; !found && (arena = gm__arena_at(&heap->arenas, i)); i++) {
    gm__arena_lock(arena);
    const gm__segment *segment = pieces_segment(arena, i + 1 == first ? (uint32_t)memory : 0);
    found = segment != NULL;
    if (found) *out = pieces_place(arena, segment);
    gm__arena_unlock(arena);
  }
  return found;
}

uint32_t gm__pieces_chunk(const gm_block *block) { return block->number & (GM__CHUNKS_MAX - 1); }

gm__piece_walk gm__pieces_walk(uint64_t memory, const gm_block *from) {
  gm__piece_walk walk = {.memory = memory};
  if (from) walk.address = from->address;
  if (from) walk.chunk = gm__pieces_chunk(from);
  return walk;
}

void gm__pieces_settle(gm__heap *heap, bool all) {
  for (gm__arena *arena = NULL; (arena = gm__arena_next(&heap->arenas, arena));) {
    gm__free_chunks_flush(arena);
    if (all) gm__settle_all(arena);
    if (!all) gm__settle_piece(arena);
  }
}

/* Begins the walk, or finds where it was. False: that chunk is no more. REQUIRES: arena lock */
static bool pieces_resume(gm__arena *arena, gm__piece_walk *walk) {
  const uint32_t index = (uint32_t)walk->memory;
  const gm__segment *segment = index < arena->segment_capacity ? arena->segment_table[index] : NULL;
  if (!segment) return false;
  if (!walk->chunk) {
    walk->chunk = gm__arena_chunk(arena, segment->edge)->right;
    walk->ended = !walk->chunk;
    return true;
  }
  if (walk->chunk >= gm__chunks_count(&arena->chunks)) return false;
  const gm__chunk *chunk = gm__arena_chunk(arena, walk->chunk);
  return gm__chunk_is(chunk) != GM__CHUNK_UNUSED && chunk->segment_index == index && chunk->address == walk->address;
}

/* REQUIRES: arena lock */
static void pieces_step(const gm__arena *arena, gm__piece_walk *walk, gm__piece *out) {
  const gm__chunk *chunk = gm__arena_chunk(arena, walk->chunk);
  *out = (gm__piece){.address = chunk->address,
                     .bytes = gm__arena_bytes(arena, chunk),
                     .chunk = walk->chunk,
                     .hole = gm__chunk_is_idle(chunk),
                     .live = gm__chunk_is(chunk) == GM__CHUNK_LIVE};
  walk->chunk = chunk->right;
  walk->ended = !chunk->right;
  if (chunk->right) walk->address = gm__arena_chunk(arena, chunk->right)->address;
}

bool gm__pieces_read(gm__heap *heap, gm__piece_walk *walk, gm__piece *out, size_t most, size_t *out_count) {
  gm__arena *arena = pieces_arena(heap, walk->memory);
  *out_count = 0;
  if (!arena) return false;
  gm__arena_lock(arena);
  const bool there = pieces_resume(arena, walk);
  while (there && !walk->ended && *out_count < most) pieces_step(arena, walk, &out[(*out_count)++]);
  gm__arena_unlock(arena);
  return there;
}
