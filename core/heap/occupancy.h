/* How full the memory is that a block lies in. */
#ifndef GM_CORE_HEAP_OCCUPANCY_H
#define GM_CORE_HEAP_OCCUPANCY_H

#include "core/heap/heap.h"

typedef struct gm__occupancy {
  uint64_t bytes, in_use; /* of the segment: all bytes, and those of live blocks. 0 for mapped pages */
  bool paged;             /* its arena's memory comes in pages, which go back one by one */
} gm__occupancy;

/* False: the block is dedicated, or not live any more. REQUIRES: no lock of a rank from ARENA on. */
bool gm__heap_occupancy(gm__heap *heap, const gm_block *block, gm__occupancy *out);

#endif
