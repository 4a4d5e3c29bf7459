/* One try of a request, in one memory or in several. */
#ifndef GM_CORE_POOL_TRY_ALLOC_H
#define GM_CORE_POOL_TRY_ALLOC_H

#include "core/pool/alloc_one.h"
#include "core/pool/spans.h"

/* Allocates a block, of several memories where the request allows that and nothing else serves. Like gm__alloc_one.
 * REQUIRES: no lock. */
static inline gm_acquire gm__try_alloc(gm_pool *pool, gm__want *want, const gm_request *request, gm_block *out,
                                       gm__refusal *why) {
  gm__refusal_begin(why);
  const gm_acquire answer = gm__alloc_one(pool, want, out, why);
  const bool several = want->flags & GM_ALLOW_SPANS && gm__is_shortage(why->status);
  return several ? gm__spans_alloc(pool, want, request, out, why) : answer;
}

#endif
