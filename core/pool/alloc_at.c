#include "core/pool/alloc.h"
#include "core/pool/alloc_one.h"

gm_acquire gm__pool_alloc_at(gm_pool *pool, const gm_request *request, const gm__target *target, gm_block *out) {
  gm__want want;
  gm_request at = *request;
  at.flags |= GM_POOLED_ONLY;
  at.stream = NULL;
  if (gm__request_read(pool, &at, &want, NULL)) return GM_ACQUIRE_INVALID;
  want.target = *target;
  gm__refusal why;
  gm__refusal_begin(&why);
  return gm__alloc_one(pool, &want, out, &why);
}
