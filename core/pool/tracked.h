/* A tracked pool: its arenas keep a ledger of their blocks, and its tracker is told when it asks. */
#ifndef GM_CORE_POOL_TRACKED_H
#define GM_CORE_POOL_TRACKED_H

#include "core/pool/entry.h"

/* The tracker of a pool that is being made. OUT_OF_HOST_MEMORY. */
gm_status gm__tracked_begin(gm_pool *pool, gm_context *ctx, gm_error *err);

/* A block that is a driver allocation of its own is out: tell the tracker, if the pool is tracked and it does not know
 * it. Without any lock. False without host memory. */
bool gm__tracked_enter(gm_pool *pool, const gm_block *block);

/* Memory that is no block of the pool's; what is returned is untracked by its owner. 0: the pool is not tracked, or
 * there is no host memory. */
uint64_t gm__tracked_beside(gm_pool *pool, const gm_track_entry *entry);

/* The live block's id in the tracker; 0: none. */
uint64_t gm__tracked_id(const gm__entry *entry);

/* The block is its owner's no more, whatever the pool still does with it: a span is entered no more, and a recording
 * gets its free, in the order of the stream. The id that is to be untracked when the entry is closed; 0: nothing is. */
uint64_t gm__tracked_leave(const gm__entry *entry, const gm_stream *stream);

/* How many elements a live block has, and where it lives. */
void gm__tracked_annotate(gm_pool *pool, const gm_block *block, uint64_t elements, gm_location location);

#endif
