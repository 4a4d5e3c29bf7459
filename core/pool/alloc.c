#include "core/pool/alloc.h"

#include "core/device/watch.h"
#include "core/heap/headroom.h"
#include "core/pool/alloc_one.h"
#include "core/pool/quota.h"
#include "core/pool/try_alloc.h"
#include "core/pool/wait.h"

gm_acquire gm__pool_alloc(gm_pool *pool, const gm_request *request, gm_block *out) {
  gm__want want;
  if (!gm__pool_lives(pool) || !out) return GM_ACQUIRE_INVALID;
  if (gm__pool_forked(pool)) return GM_ACQUIRE_FAILED;
  if (gm__request_read(pool, request, &want, NULL)) return GM_ACQUIRE_INVALID;
  gm__refusal why;
  gm__ladder ladder;
  gm__ladder_begin(&ladder);
  want.ladder = &ladder;
  const bool waits = want.deadline_ns || gm__leaves == request;
  const gm_acquire answer =
      waits ? gm__wait_alloc(pool, &want, request, out, &why) : gm__try_alloc(pool, &want, request, out, &why);
  gm__ladder_add(pool->heap.provider.rungs, &ladder);
  const bool refused = gm__is_shortage(why.status) && !(want.flags & GM_POOLED_ONLY);
  if (answer == GM_ACQUIRE_FRESH || refused) gm__watches_hear(pool->device);
  if (why.status) return gm__heap_refuse(&pool->heap, &want, &why);
  if (answer <= GM_ACQUIRE_NEEDS_BARRIER) gm__arena_learn(&pool->heap.arenas, request, &want);
  return answer;
}

gm_acquire gm__pool_alloc_beside(gm_pool *pool, const gm_request *request, gm_block *out) {
  gm__want want;
  gm_request beside = *request;
  if (beside.must_be == GM_DEVICE_LOCAL) beside.must_be = GM_DEVICE_ACCESSIBLE;
  if (gm__request_read(pool, &beside, &want, NULL)) return GM_ACQUIRE_INVALID;
  if (pool->heap.provider.has_upstream) return GM_ACQUIRE_EXHAUSTED;
  want.beside_device = true;
  gm__refusal why;
  gm__refusal_begin(&why);
  gm_acquire answer = gm__alloc_one(pool, &want, out, &why);
  if (why.status) answer = gm__heap_refuse(&pool->heap, &want, &why);
  return answer == GM_ACQUIRE_FAILED ? GM_ACQUIRE_EXHAUSTED : answer;
}

gm_status gm__pool_alloc_managed(gm_pool *pool, const gm_request *request, gm_block *out, gm_error *err) {
  gm__heap *heap = &pool->heap;
  gm__want want;
  gm__grant grant;
  gm__allocation *allocation = NULL;
  gm__refusal why;
  gm__ladder ladder;
  gm_status status = gm__request_read(pool, request, &want, err);
  if (status) return status;
  gm__refusal_begin(&why);
  gm__ladder_begin(&ladder);
  want.ladder = &ladder;
  want.managed = true;
  status = gm__pool_take_quota(pool, &want, err);
  if (status) return status;
  status = gm__provider_alloc(&heap->provider, &want, want.exact, &allocation, &why.failure);
  if (gm__is_shortage(status) && gm__headroom_make(heap, &want, status)) {
    status = gm__provider_alloc(&heap->provider, &want, want.exact, &allocation, &why.failure);
  }
  gm__ladder_add(heap->provider.rungs, &ladder);
  if (status) {
    gm__pool_return_quota(pool, &want);
    why.status = status;
    gm__heap_refuse(heap, &want, &why);
    if (err) *err = why.failure;
    return status;
  }
  gm__dedicated_describe(&grant, allocation);
  gm__heap_hand_out(heap, &want, &grant, true, out);
  return GM_OK;
}
