/* Segments from the supply layer and back to it (best_fit). Take the pool's lock themselves, but for gm__growth_trim.
 */
#ifndef GM_CORE_POOL_GROWTH_H
#define GM_CORE_POOL_GROWTH_H

#include "core/pool/supply.h"

/* A new segment and the request's part of it, AWAY. The supply layer's answers; of several sizes the pool would like,
 * that to the smallest. */
gm_status gm__growth_take(gm_pool *pool, const gm__want *want, gm__node **out, gm_error *err);

/* Put idle segments on the list until at most `keep_bytes` are pooled. With the pool's lock. */
void gm__growth_trim(gm_pool *pool, uint64_t keep_bytes, gm__leaving *leaving);

#endif
