/* Requests, with all that the fast path leaves out. */
#ifndef GM_CORE_POOL_ALLOC_H
#define GM_CORE_POOL_ALLOC_H

#include "core/base/inner.h"
#include "core/pool/pool.h"

/* gm_alloc. */
gm_acquire gm__pool_alloc(gm_pool *pool, const gm_request *request, gm_block *out);

/* gm_alloc for memory beside the device (pinned host memory). EXHAUSTED: the device has none. */
GM__INNER gm_acquire gm__pool_alloc_beside(gm_pool *pool, const gm_request *request, gm_block *out);

/* gm_alloc at that place in pooled memory, in the host's order. EXHAUSTED: the place is not free. No refusal is noted.
 */
gm_acquire gm__pool_alloc_at(gm_pool *pool, const gm_request *request, const gm__target *target, gm_block *out);

/* A block of memory that migrates, on a device that has such memory. It is counted and limited like all blocks, but
 * never pooled, because advice and place would stick to it. gm_free gives it back at once. */
gm_status gm__pool_alloc_managed(gm_pool *pool, const gm_request *request, gm_block *out, gm_error *err);

#endif
