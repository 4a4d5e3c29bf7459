/* Requests that wait for memory (gm_request.deadline_ns). */
#ifndef GM_CORE_POOL_WAIT_H
#define GM_CORE_POOL_WAIT_H

#include "core/pool/pool.h"

/* Like gm__try_alloc, but it waits for its turn and for memory, until the deadline of the request. TIMEOUT. REQUIRES:
 * no lock; `want` has a ladder. */
gm_acquire gm__wait_alloc(gm_pool *pool, gm__want *want, const gm_request *request, gm_block *out, gm__refusal *why);

#endif
