/* Performance scopes of a pool or of a context: the list of the open ones. */
#ifndef GM_CORE_MANAGE_PERF_H
#define GM_CORE_MANAGE_PERF_H

#include "core/pool/pool.h"
#include "gm/perf.h"

/* Frees the list of a pool that ends, or of a pool that was ended by force. */
void gm__perf_clear(gm_pool *pool);

/* A pool leaves its context: the context's scopes keep what it counted. REQUIRES: context lock. */
void gm__perf_leave(gm_pool *pool);

#endif
