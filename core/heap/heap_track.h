/* Tells the tracker of one block of a heap. */
#ifndef GM_CORE_HEAP_HEAP_TRACK_H
#define GM_CORE_HEAP_HEAP_TRACK_H

#include "core/heap/live.h"

/* Tells the tracker of a dedicated block, if the pool is tracked and the tracker does not know the block. False without
 * host memory. REQUIRES: no lock. */
bool gm__track_enter(gm__heap *heap, const gm_block *block);

/* The live block's id in the tracker; 0: none. */
uint64_t gm__tracked_id(const gm__live *live);

/* The owner gives the block up. Its chunk leaves the ledger; a recording gets the free, in the order of the stream.
 * Returns the id that the caller must untrack after gm__live_close; 0: none. */
uint64_t gm__track_leave(const gm__live *live, const gm_stream *stream);

#endif
