/* From a refusal and the figures of now to its cause, and to the smallest change that helps. */
#ifndef GM_CORE_MANAGE_CAUSE_H
#define GM_CORE_MANAGE_CAUSE_H

#include "core/pool/pool.h"

/* Fills in `cause`, `waited_for`, `change` with its bytes and tag, and `ever_fits`. REQUIRES: `out` has the figures and
 * the tags of the pool. No lock. */
void gm__cause_tell(gm_pool *pool, const gm__refused *refused, gm_explanation *out);

#endif
