/* A tracked pool: its arenas keep a ledger of their blocks, and its tracker reads that when it is asked. */
#ifndef GM_CORE_MANAGE_TRACKED_H
#define GM_CORE_MANAGE_TRACKED_H

#include "core/heap/live.h"

/* Makes the tracker of a pool that is being made. OUT_OF_HOST_MEMORY. */
gm_status gm__tracked_begin(gm_pool *pool, gm_context *ctx, gm_error *err);

/* Tracks memory that is no block of the pool. The owner of that memory untracks the id that is returned. 0: the pool is
 * not tracked, or there is no host memory. */
uint64_t gm__tracked_beside(gm_pool *pool, const gm_track_entry *entry);

/* Notes how many elements a live block has, and where it lies. */
void gm__tracked_annotate(gm_pool *pool, const gm_block *block, uint64_t elements, gm_location location);

#endif
