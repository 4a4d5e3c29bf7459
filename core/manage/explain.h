/* Why a pool refused. */
#ifndef GM_CORE_MANAGE_EXPLAIN_H
#define GM_CORE_MANAGE_EXPLAIN_H

#include "core/base/inner.h"
#include "core/pool/pool.h"

/* Makes of an answer of gm_alloc, which refused the request just now, a failure of `op` with gm_explain's text. The
 * status is that of the pool's last failure, or of the answer where another thread's request failed since. */
GM__INNER gm_status gm__explain_refusal(gm_pool *pool, const gm_request *request, gm_acquire answer, const char *op,
                                        gm_error *err);

#endif
