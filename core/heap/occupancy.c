#include "core/heap/occupancy.h"

#include "core/heap/live.h"

/* Adds up the chunks to the left and to the right of a live one, up to the edges of its segment. REQUIRES: arena lock
 */
static uint64_t occupancy_count(const gm__arena *arena, uint32_t number) {
  const gm__chunk *chunk = gm__arena_chunk(arena, number);
  uint64_t in_use = 0;
  while (chunk->left && gm__arena_chunk(arena, chunk->left)->state != GM__CHUNK_EDGE) {
    chunk = gm__arena_chunk(arena, chunk->left);
  }
  for (;; chunk = gm__arena_chunk(arena, chunk->right)) {
    const uint8_t state = chunk->state & GM__CHUNK_STATE;
    if (state == GM__CHUNK_LIVE || state == GM__CHUNK_AWAY) in_use += gm__arena_bytes(arena, chunk);
    if (!chunk->right) return in_use;
  }
}

bool gm__heap_occupancy(gm__heap *heap, const gm_block *block, gm__occupancy *out) {
  gm__live live;
  if (!gm__live_open(heap, block, &live)) return false;
  *out = (gm__occupancy){.bytes = live.allocation->bytes, .paged = live.arena && gm__arena_has_pages(live.arena)};
  gm__live_close(&live);
  return live.arena != NULL;
}

uint64_t gm__heap_segment_in_use(gm__heap *heap, const gm_block *block) {
  gm__live live;
  if (!gm__live_open(heap, block, &live)) return UINT64_MAX;
  const uint64_t in_use = live.arena ? occupancy_count(live.arena, live.chunk) : UINT64_MAX;
  gm__live_close(&live);
  return in_use;
}
