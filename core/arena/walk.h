/* Walks over all chunks of an arena that hold its lock for a piece at a time, whatever the number of chunks. */
#ifndef GM_CORE_ARENA_WALK_H
#define GM_CORE_ARENA_WALK_H

#include "core/arena/arena.h"

enum { GM__ARENA_PIECE = 1024 }; /* so many chunks are looked at, until other threads may enter */

/* The number behind `number` (0: the walk begins); 0: the walk is over. After each piece the arena lock is left and
 * entered again, so nothing that was known of another chunk is still true. A chunk that is made meanwhile is missed if
 * its number is behind the walk. REQUIRES: arena lock. */
uint32_t gm__arena_walk(gm__arena *arena, uint32_t number);

/* Steps to the right in a row of free and unmapped chunks. *looks counts the steps; after each piece of them the lock
 * is left and entered again. False: the chunk has changed meanwhile, and what was known of the row is void. REQUIRES:
 * arena lock. */
bool gm__arena_walk_right(gm__arena *arena, uint32_t *number, uint32_t *looks);

/* Leaves the arena lock, and enters it again behind threads that sleep before it. */
void gm__arena_breathe(gm__arena *arena);

#endif
