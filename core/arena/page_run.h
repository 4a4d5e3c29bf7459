/* Page runs. A page run is neighbouring free chunks and unmapped chunks of a range. Once its unmapped chunks are
 * mapped, it becomes one free chunk. REQUIRES: arena lock. Only a thread with the pages lock maps, unmaps, or changes
 * unmapped chunks. */
#ifndef GM_CORE_ARENA_PAGE_RUN_H
#define GM_CORE_ARENA_PAGE_RUN_H

#include "core/arena/arena.h"

typedef struct gm__page_run {
  gm__segment *segment;
  uint32_t first, last;     /* its first and its last chunk */
  uint64_t skip, drop;      /* bytes it does not need: at the first chunk's begin, at the last one's end */
  uint64_t unmapped, bytes; /* the bytes to map; the bytes of the whole page run with `extra` */
  uint64_t extra; /* bytes to map beyond the need at the end of a range, so that the range need not grow again soon */
  uint32_t from, to, reach; /* its pages are [from, to), and with `extra` [from, reach) */
} gm__page_run;

/* Finds a page run of the area, of at least `need` bytes for requests on the slot's stream. It has the fewest bytes to
 * map, and of these it is the smallest. Returns it as one chunk that is AWAY; 0: there is none. Two chunks were
 * reserved. */
uint32_t gm__page_run_open(gm__arena *arena, gm__area area, int slot, uint64_t need, gm__page_run *out);

/* A chunk that is AWAY comes back as free chunks where it is mapped, and as unmapped chunks elsewhere. Parts stay AWAY
 * and are linked at arena->stranded where pages are shut, or where there is no host memory for so many parts.
 * gm__arena_retry tries again. */
void gm__page_run_return(gm__arena *arena, const gm__va_range *range, uint32_t number);

/* A chunk that is in no list, and has no mapped page, becomes an unmapped chunk. It is joined with those that it
 * touches. */
void gm__page_run_put_unmapped(gm__arena *arena, uint32_t number);

#endif
