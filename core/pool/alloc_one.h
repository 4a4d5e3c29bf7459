/* One request for one block: quota, then guard, then heap. */
#ifndef GM_CORE_POOL_ALLOC_ONE_H
#define GM_CORE_POOL_ALLOC_ONE_H

#include "core/pool/pool.h"

/* Reads the request as the pool serves it, with what its guard puts around the block. Errors: gm__want_read. */
gm_status gm__request_read(const gm_pool *pool, const gm_request *request, gm__want *out, gm_error *err);

/* Hands out a block for the request that was read. *why: as gm__heap_alloc fills it in. */
gm_acquire gm__alloc_one(gm_pool *pool, gm__want *want, gm_block *out, gm__refusal *why);

#endif
