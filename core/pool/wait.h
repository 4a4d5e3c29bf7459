/* Requests that wait for memory (gm_request.deadline_ns). */
#ifndef GM_CORE_POOL_WAIT_H
#define GM_CORE_POOL_WAIT_H

#include "core/base/thread_data.h"
#include "core/pool/pool.h"

/* The request of the calling thread that does not wait but leaves, as a future does. NULL: none. */
extern _Thread_local const gm_request *gm__leaves GM__THREAD_DATA __attribute__((visibility("hidden")));

/* The answer to such a request where waiting may help. Nothing was refused. */
#define GM__ACQUIRE_LATER ((gm_acquire)(GM_ACQUIRE_FAILED + 1))

/* Like gm__try_alloc, but it waits for its turn and for memory, until the deadline of the request. TIMEOUT. REQUIRES:
 * no lock; `want` has a ladder. */
gm_acquire gm__wait_alloc(gm_pool *pool, gm__want *want, const gm_request *request, gm_block *out, gm__refusal *why);

#endif
