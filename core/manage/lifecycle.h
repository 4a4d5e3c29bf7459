/* A pool's life, and what the sources of this folder call of each other. */
#ifndef GM_CORE_MANAGE_LIFECYCLE_H
#define GM_CORE_MANAGE_LIFECYCLE_H

#include "core/pool/pool.h"

/* The number of live blocks, for a caller that is about to end the pool. It waits for the work of guarded blocks that
 * were freed, up to a second each; such blocks count until then. 0 in a forked child. */
uint64_t gm__pool_live(gm_pool *pool);

/* The pool's memory serves no other pool any more. BUSY: one is asking for it, for more than a second. */
gm_status gm__pool_stop_lending(gm_pool *pool, const char *op, gm_error *err);

/* Ends a pool that lends nothing any more, but for its object. It waits for nothing, and frees blocks that are out. */
void gm__pool_end(gm_pool *pool, bool forked);

/* The cap of a pool that was asked to have `asked`: 0 is what the configuration says. */
uint64_t gm__pool_cap(gm_context *ctx, uint64_t asked);

/* Prepares `listener`: what the pool hears of its device's streams (listen.c). */
void gm__pool_listen(gm_pool *pool);

/* Puts the pool into the context's list, from which gm_context_stats and gm_device_stats add up; takes it out again. */
void gm__pool_enlist(gm_pool *pool);
void gm__pool_delist(gm_pool *pool);

/* The next pool of that list (NULL: the first). *looks counts the steps, and begins with 0. After each piece of them
 * the context's lock is left and entered again. NULL: there is none. REQUIRES: context lock. */
gm_pool *gm__pools_walk(gm_context *ctx, gm_pool *pool, uint32_t *looks);

/* Warms up a pool that was just created, as the keys say. A failure is logged: the pool works without it. */
void gm__warm_up_by_configuration(gm_pool *pool);

/* Writes a mark of the pool's tracker into the pool's recording, if there is one. */
void gm__record_tracker_mark(gm_pool *pool, uint64_t mark);

#endif
