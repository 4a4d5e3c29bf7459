/* Eviction: what a program's evictors (gm/evictor.h) free for a request that nothing else serves. */
#ifndef GM_CORE_HEAP_EVICTION_H
#define GM_CORE_HEAP_EVICTION_H

#include "core/device/evictor.h"
#include "core/heap/heap.h"

typedef struct gm__eviction {
  gm__heap *heap;
  const gm__want *want;
  gm__evict_run run;
  uint64_t least; /* to ask for in the next round, even if less is missing */
  bool reaped;    /* since the last round; what a guard holds back goes before any cache */
  bool done;      /* all was asked for */
} gm__eviction;

/* False: no evictor may be asked for the request, which was refused with `status`. Else gm__eviction_end follows. */
bool gm__eviction_begin(gm__eviction *eviction, gm__heap *heap, const gm__want *want, gm_status status);

/* One round over the evictors. False: they freed nothing, and there is no use in another try. REQUIRES: no lock. */
bool gm__eviction_round(gm__eviction *eviction, gm_status status);
void gm__eviction_end(gm__eviction *eviction);

#endif
