#include "core/arena/walk.h"

/* Numbers never move, so a walk by number needs no place that other threads could spoil. */

void gm__arena_breathe(gm__arena *arena) { gm__bias_breathe(&arena->lock, gm__thread_self()); }

uint32_t gm__arena_walk(gm__arena *arena, uint32_t number) {
  number++;
  if (number % GM__ARENA_PIECE == 0) gm__arena_breathe(arena);
  return number < gm__chunks_count(&arena->chunks) ? number : 0;
}
