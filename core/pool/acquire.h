/* Requests, with all that the fast path leaves out. */
#ifndef GM_CORE_POOL_ACQUIRE_H
#define GM_CORE_POOL_ACQUIRE_H

#include "core/pool/request.h"
#include "core/pool/taken.h"

/* Why a request, or a part of one, was not served; nothing is noted yet. */
typedef struct gm__refusal {
  gm_status status; /* GM_OK: all is said, whatever the answer was */
  gm_error failure; /* as who refused filled it in */
} gm__refusal;

/* gm_alloc. */
gm_acquire gm__acquire(gm_pool *pool, const gm_request *request, gm_block *out);

/* The same for a part of what is asked for. */
gm_acquire gm__acquire_part(gm_pool *pool, const gm_request *request, gm_block *out, gm__refusal *why);

/* Is the request's stream being captured? Then `err` says that nothing can be asked of the driver. */
bool gm__acquire_is_captured(const gm__want *want, gm_error *err);

/* Memory in hand becomes the caller's. */
void gm__acquire_hand_out(gm_pool *pool, const gm__want *want, const gm__taken *taken, bool fresh, gm_block *out);

#endif
