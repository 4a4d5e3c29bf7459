/* Live blocks that are mapped, for a pool that ends although callers hold them. */
#ifndef GM_CORE_HEAP_MAPPED_H
#define GM_CORE_HEAP_MAPPED_H

#include "core/heap/heap.h"

/* Takes the record of a mapping from a block that has one. *memory is what the mapping's offset counts in. The caller
 * ends the mapping, and releases the record. NULL: no block is mapped. REQUIRES: no lock, and no other thread in a call
 * on the pool. */
gm__mapping *gm__mapped_take(gm__heap *heap, gm_memory *memory);

#endif
