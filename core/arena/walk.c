#include "core/arena/walk.h"

/* Numbers never move, so a walk by number needs no place that other threads could spoil. */

void gm__arena_breathe(gm__arena *arena) { gm__bias_breathe(&arena->lock, gm__thread_self()); }

uint32_t gm__arena_walk(gm__arena *arena, uint32_t number) {
  number++;
  if (number % GM__ARENA_PIECE == 0) gm__arena_breathe(arena);
  return number < gm__chunks_count(&arena->chunks) ? number : 0;
}

bool gm__arena_walk_right(gm__arena *arena, uint32_t *number, uint32_t *looks) {
  const gm__chunk *chunk = gm__arena_chunk(arena, *number);
  bool same = true;
  if (++*looks % GM__ARENA_PIECE == 0) {
    const gm__chunk seen = *chunk;
    gm__arena_breathe(arena);
    chunk = gm__arena_chunk(arena, *number); /* the table may have moved */
    same = chunk->address == seen.address && chunk->granules == seen.granules && chunk->left == seen.left &&
           chunk->segment_index == seen.segment_index && chunk->check == seen.check && chunk->state == seen.state;
  }
  *number = chunk->right;
  return same;
}
