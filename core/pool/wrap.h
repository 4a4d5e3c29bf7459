/* The engine's memory as a block of a pool. */
#ifndef GM_CORE_POOL_WRAP_H
#define GM_CORE_POOL_WRAP_H

#include "core/pool/pool.h"

/* Is memory of the pool behind what is wrapped, under another address? Looks at every driver allocation of the pool.
 * With the pool's lock. */
bool gm__wrap_overlaps(const gm_pool *pool, const gm__node *node);

#endif
