/* Requests, with all that the fast path leaves out. */
#ifndef GM_CORE_POOL_ACQUIRE_H
#define GM_CORE_POOL_ACQUIRE_H

#include "core/pool/request.h"
#include "core/pool/taken.h"

/* gm_alloc. */
gm_acquire gm__acquire(gm_pool *pool, const gm_request *request, gm_block *out);

/* The same for a part of what is asked for: refused, nothing is noted yet, and *why, with a status, says why. */
gm_acquire gm__acquire_part(gm_pool *pool, const gm_request *request, gm_block *out, gm_error *why);

/* Is the request's stream being captured? Then `err` says that nothing can be asked of the driver. */
bool gm__acquire_is_captured(const gm__want *want, gm_error *err);

/* Memory in hand becomes the caller's. */
void gm__acquire_hand_out(gm_pool *pool, const gm__want *want, const gm__taken *taken, bool fresh, gm_block *out);

#endif
