/* Bounds how many native objects a heap keeps that no block uses any more. */
#ifndef GM_CORE_HEAP_OBJECT_SWEEP_H
#define GM_CORE_HEAP_OBJECT_SWEEP_H

#include "core/heap/heap.h"

enum { GM__OBJECTS_LEAST = 256 }; /* so many stay that no block uses; twice as many bring a sweep */

/* True when there are so many objects that a sweep is due. REQUIRES: provider lock. */
bool gm__object_sweep_is_due(const gm__heap *heap);

/* Destroys the objects that no work may still use, except those of live blocks that asked for them, and except
 * GM__OBJECTS_LEAST. Objects that were asked for again stay first. It asks streams how far they are, and may record
 * points. REQUIRES: no lock. */
void gm__object_sweep(gm__heap *heap);

#endif
