/* Windows: neighbouring holes and gaps of a range that become one hole once their gaps are mapped. Inside the arena's
 * lock; who has the pool's `pages.lock` alone maps, unmaps, or changes gaps. */
#ifndef GM_CORE_POOL_WINDOW_H
#define GM_CORE_POOL_WINDOW_H

#include "core/pool/arena.h"

typedef struct gm__window {
  gm__segment *segment;
  uint32_t first, last;     /* spans, holes and gaps */
  uint64_t skip, drop;      /* bytes of gap that are not needed: of the first, at its begin; of the last, at its end */
  uint64_t unmapped, bytes; /* what has to be mapped; all of it, `extra` included */
  uint64_t extra;           /* what may be mapped at the end of a range, so that it need not grow again soon */
  uint32_t from, to, reach; /* pages, the last two behind the end: without what is extra, and with it */
} gm__window;

/* The window of at least `need` bytes for requests on the slot's stream with the fewest bytes to map, of these the
 * smallest, as a span that is AWAY; 0: there is none. Two spans were reserved. */
uint32_t gm__window_open(gm__arena *arena, int slot, uint64_t need, gm__window *out);

/* A span that is AWAY goes back as what it is now: holes of its lane, and gaps. Pages that are shut stay away, and
 * without host memory for so many pieces the rest does: linked as arena->stranded, to be given once more. */
void gm__window_give(gm__arena *arena, const gm__range *range, uint32_t number);

/* A span that is in no list, and of whose pages none is mapped, becomes a gap, one with those that it touches. */
void gm__window_put_gap(gm__arena *arena, uint32_t number);

#endif
