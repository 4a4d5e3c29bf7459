/* One step of a request that waits for memory: it looks whether anything has changed, and tries. */
#ifndef GM_CORE_POOL_WAIT_STEP_H
#define GM_CORE_POOL_WAIT_STEP_H

#include "core/pool/pool.h"

/* The looks of a request so far. Zeros: none. */
typedef struct gm__wait_looks {
  uint64_t signs; /* the counters at its last look */
  uint32_t count; /* looks since its last try */
  bool narrow;    /* it waits for its pool alone (core/device/turn.h) */
} gm__wait_looks;

/* Tries once. True: that is the end of it, with memory or without. REQUIRES: no lock; `want` has a ladder. */
bool gm__wait_try(gm_pool *pool, gm__want *want, const gm_request *request, gm_block *out, gm__refusal *why,
                  gm_acquire *answer);

/* Like gm__wait_try, but it tries only where a counter has moved, after some looks, or for the last time. */
bool gm__wait_look(gm_pool *pool, gm__want *want, const gm_request *request, gm_block *out, gm__refusal *why,
                   gm_acquire *answer, gm__wait_looks *looks, bool last);

/* The deadline has passed: TIMEOUT in *why, and the answer. */
gm_acquire gm__wait_too_long(gm__want *want, gm__refusal *why);

#endif
