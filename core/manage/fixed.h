/* Pools of fixed sizes: each block is a whole segment of a size of a list, and all are taken when the pool is made. */
#ifndef GM_CORE_MANAGE_FIXED_H
#define GM_CORE_MANAGE_FIXED_H

#include "core/pool/pool.h"

/* INVALID_ARGUMENT: `sizes` are not as gm_pool_params demands, or the pool has another strategy. */
gm_status gm__fixed_check(const gm_pool_params *params, gm_error *err);

/* The sizes as the heap has them, with the room of the pool's guard. Another strategy has none. */
void gm__fixed_read(const gm_pool *pool, const gm_device *device, const gm_pool_params *params, gm__fixed_sizes *out);

/* Takes all blocks of the list into a new pool. Where the parameters name no cap, what it has now is its cap. Does
 * nothing in a pool of another strategy. Errors: those of gm_pool_warm_up, and some blocks may be in the pool. */
gm_status gm__fixed_take(gm_pool *pool, const gm_pool_params *params, gm_error *err);

#endif
