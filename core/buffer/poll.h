/* The part of gm_context_poll for the buffers of pools that asked for it (poll.c). */
#ifndef GM_CORE_BUFFER_POLL_H
#define GM_CORE_BUFFER_POLL_H

#include "core/pool/pool.h"

/* Compacts a pool, or promotes its buffers, as it asked for; if it did not, nothing. REQUIRES: the pool does not end
 * meanwhile. */
void gm__compact_polled(gm_pool *pool);
void gm__promote_polled(gm_pool *pool);

#endif
