/* One try of a request, in one memory or in several. */
#ifndef GM_CORE_POOL_TRY_ALLOC_H
#define GM_CORE_POOL_TRY_ALLOC_H

#include "core/pool/pool.h"

/* Allocates a block, of several memories where the request allows that and nothing else serves. As gm__alloc_one.
 * REQUIRES: no lock. */
gm_acquire gm__try_alloc(gm_pool *pool, gm__want *want, const gm_request *request, gm_block *out, gm__refusal *why);

#endif
