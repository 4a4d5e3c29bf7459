/* A pool that is being recorded: a tape for each arena, and one, written with the pool's lock, for marks and blocks
 * that are driver allocations of their own. */
#ifndef GM_CORE_POOL_RECORD_H
#define GM_CORE_POOL_RECORD_H

#include "core/pool/pool.h"

/* A block that is a driver allocation of its own was handed out; or freed, in the order of that stream. Nothing happens
 * while the pool is not recorded. With the lock. */
void gm__record_enter(gm_pool *pool, const gm__node *node);
void gm__record_leave(gm_pool *pool, const gm__node *node, const gm_stream *stream);

/* The tape of a new arena; NULL: none is wanted, or there is no host memory. With the lock. */
gm__tape *gm__record_tape(const gm_pool *pool, uint32_t arena);

/* A mark of the pool's tracker. */
void gm__record_tracker_mark(gm_pool *pool, uint64_t mark);

#endif
