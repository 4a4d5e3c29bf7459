/* The idle policy of a pool, which polls carry out. Thread-safe. */
#ifndef GM_CORE_BUFFER_IDLE_H
#define GM_CORE_BUFFER_IDLE_H

#include "core/pool/pool.h"
#include "gm/idle.h"

/* Sets the policy. NULL: there is none any more. */
void gm__idle_set(gm_pool *pool, const gm_idle_params *params);

/* Trims the pool or puts it to sleep, as its policy says; without one, nothing. REQUIRES: the pool does not end
 * meanwhile. */
void gm__idle_polled(gm_pool *pool);

#endif
