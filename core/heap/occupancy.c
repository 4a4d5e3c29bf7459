#include "core/heap/occupancy.h"

#include "core/heap/live.h"

/* Adds up the chunks to the left and to the right of a live one, up to the edges of its segment. REQUIRES: arena lock
 */
static void occupancy_count(const gm__arena *arena, uint32_t number, gm__occupancy *out) {
  const gm__chunk *chunk = gm__arena_chunk(arena, number);
  while (chunk->left && gm__arena_chunk(arena, chunk->left)->state != GM__CHUNK_EDGE) {
    chunk = gm__arena_chunk(arena, chunk->left);
  }
  for (;; chunk = gm__arena_chunk(arena, chunk->right)) {
    const uint8_t state = chunk->state & GM__CHUNK_STATE;
    const uint64_t bytes = gm__arena_bytes(arena, chunk);
    out->bytes += bytes;
    if (state == GM__CHUNK_LIVE || state == GM__CHUNK_AWAY) out->in_use += bytes;
    if (!chunk->right) return;
  }
}

bool gm__heap_occupancy(gm__heap *heap, const gm_block *block, gm__occupancy *out) {
  gm__live live;
  if (!gm__live_open(heap, block, &live)) return false;
  *out = (gm__occupancy){.paged = live.arena && gm__arena_has_pages(live.arena)};
  if (live.arena && !out->paged) occupancy_count(live.arena, live.chunk, out);
  gm__live_close(&live);
  return live.arena != NULL;
}
