/* The memory that a block lies in, and how full it is. */
#ifndef GM_CORE_HEAP_OCCUPANCY_H
#define GM_CORE_HEAP_OCCUPANCY_H

#include "core/heap/heap.h"

typedef struct gm__occupancy {
  uint64_t bytes; /* of the segment, or of the range of addresses */
  bool paged;     /* its arena's memory comes in pages, which go back one by one */
} gm__occupancy;

/* False: the block is dedicated, or not live any more. REQUIRES: no lock of a rank from ARENA on. */
bool gm__heap_occupancy(gm__heap *heap, const gm_block *block, gm__occupancy *out);

/* The bytes of live blocks in the block's segment. It looks at each piece of the segment. UINT64_MAX: the block has no
 * segment, or is not live any more. REQUIRES: no lock of a rank from ARENA on. */
uint64_t gm__heap_segment_in_use(gm__heap *heap, const gm_block *block);

#endif
