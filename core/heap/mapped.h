/* Live blocks that are mapped, for a pool that ends although callers hold them. */
#ifndef GM_CORE_HEAP_MAPPED_H
#define GM_CORE_HEAP_MAPPED_H

#include "core/heap/heap.h"

/* How far a walk over the mapped blocks has come. It begins with {0}. */
typedef struct gm__mapped_place {
  uint32_t allocation, arena;
  size_t cold; /* of the arena */
} gm__mapped_place;

/* Takes the record of the next mapping. *memory is what the mapping's offset counts in. The caller ends the mapping,
 * and releases the record. NULL: no further block is mapped. REQUIRES: no lock, and no other thread in a call on the
 * pool.
 */
gm__mapping *gm__mapped_take(gm__heap *heap, gm__mapped_place *place, gm_memory *memory);

#endif
