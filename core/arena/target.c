#include "core/arena/arena_alloc.h"
#include "core/arena/free_chunks.h"
#include "core/arena/quick_flush.h"
#include "core/arena/settle.h"

enum { TARGET_SHIFT = 32 }; /* see gm__arena_memory */

gm__arena *gm__arena_for(gm__arena_set *set, const gm__want *want, const gm__memory_kind *kind) {
  const uint32_t number = (uint32_t)(want->target.memory >> TARGET_SHIFT);
  return number ? gm__arena_at(set, number - 1) : gm__arena_of(set, kind);
}

/* The idle free chunk with the place that the request asks for; 0: there is none. Number 0 is always an edge. */
static uint32_t target_find(const gm__arena *arena, const gm__want *want) {
  const gm__target *at = &want->target;
  if (at->left >= gm__chunks_count(&arena->chunks)) return 0;
  const uint32_t number = gm__arena_chunk(arena, at->left)->right;
  const gm__chunk *chunk = gm__arena_chunk(arena, number);
  if (!gm__chunk_is_idle(chunk) || gm__arena_memory(arena, chunk) != at->memory) return 0;
  const uint64_t before = at->address - chunk->address, bytes = gm__arena_bytes(arena, chunk);
  return before < bytes && want->exact <= bytes - before ? number : 0;
}

/* Chunks that were freed there a moment ago may not be joined yet. */
uint32_t gm__target_find(gm__arena *arena, const gm__want *want) {
  uint32_t number = target_find(arena, want);
  if (number || want->target.memory >> TARGET_SHIFT != arena->number + 1) return number;
  gm__free_chunks_flush(arena);
  gm__order_refresh(&arena->order, arena->order.used);
  gm__settle_all(arena);
  return target_find(arena, want);
}
