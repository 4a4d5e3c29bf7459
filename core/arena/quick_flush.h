/* Quick lists are emptied: their chunks become free chunks. */
#ifndef GM_CORE_ARENA_QUICK_FLUSH_H
#define GM_CORE_ARENA_QUICK_FLUSH_H

#include "core/arena/free_chunks.h"

/* Turns the chunks of all quick lists into free chunks, or those of such sizes as the area has. True if there was any.
 */
bool gm__free_chunks_flush_area(gm__arena *arena, gm__area area);
static inline void gm__free_chunks_flush(gm__arena *arena) {
  gm__free_chunks_flush_area(arena, GM__AREA_LARGE);
  gm__free_chunks_flush_area(arena, GM__AREA_SMALL);
}

#endif
