/* Walks over the free chunks of an arena. They are found in their bins, so that what is alive costs nothing. Where the
 * free chunks are many, or others move them meanwhile, the walk begins anew and looks at all chunks by number. */
#ifndef GM_CORE_ARENA_FREE_WALK_H
#define GM_CORE_ARENA_FREE_WALK_H

#include "core/arena/arena.h"

/* All zeros: the walk begins. */
typedef struct gm__free_walk {
  bool by_number;
  bool lost; /* it has lost its place: gm__free_walk_again */
  uint8_t cache, area;
  uint16_t bin;
  uint32_t at;    /* the chunk that was given last; 0: none of the bin */
  uint32_t check; /* of that chunk */
  uint32_t looks;
} gm__free_walk;

/* The next free chunk; 0: the walk is over, or lost. It leaves the lock now and then (walk.h), and so may the caller.
 * The walk may miss chunks that become free meanwhile. REQUIRES: arena lock, and no chunks in quick lists. */
uint32_t gm__free_walk_next(gm__arena *arena, gm__free_walk *walk);

/* True when the walk was lost: the caller forgets what it has counted, and walks again. At most once. */
bool gm__free_walk_again(gm__free_walk *walk);

#endif
