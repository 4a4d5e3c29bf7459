/* Holes: the free memory of arenas beside their blocks, and what is idle, by where it lies. */
#ifndef GM_CORE_ARENA_HOLES_H
#define GM_CORE_ARENA_HOLES_H

#include "core/arena/arena.h"

typedef struct gm__holes {
  uint64_t count, bytes; /* of all holes */
  uint64_t largest;      /* the largest hole */
  uint64_t scattered;    /* bytes of the holes without the largest of each arena and area */
  uint64_t idle;         /* whole segments and pages that no block has a byte of */
  uint64_t largest_free; /* the largest free chunk, idle or not */
} gm__holes;

/* Adds what the arena has, and notes its figures for gm_stats. It walks over the free chunks (free_walk.h), and leaves
 * the lock now and then. REQUIRES: arena lock, and no blocks in quick lists. */
void gm__holes_add_arena(gm__holes *holes, gm__arena *arena);

#endif
