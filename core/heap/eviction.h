/* Eviction: what a program's evictors (gm/evictor.h) free for a request that nothing else serves. */
#ifndef GM_CORE_HEAP_EVICTION_H
#define GM_CORE_HEAP_EVICTION_H

#include "core/device/evictor.h"
#include "core/heap/heap.h"

/* The caller clears `began`, and calls gm__eviction_end if it is set in the end. */
typedef struct gm__eviction {
  bool began;  /* the rest is set */
  bool reaped; /* since the last round; what a guard holds back goes before any cache */
  bool done;   /* all was asked for */
  gm__heap *heap;
  gm__evict_run run;
  uint64_t least; /* to ask for in the next round, even if less is missing */
} gm__eviction;

/* One round over the evictors for a request that was refused with `status`. False: none may be asked, or they freed
 * nothing, and there is no use in another try. REQUIRES: no lock. */
bool gm__eviction_round(gm__eviction *eviction, gm__heap *heap, const gm__want *want, gm_status status);
void gm__eviction_end(gm__eviction *eviction);

#endif
