#include "core/pool/alloc_one.h"

#include "core/base/cancel.h"
#include "core/heap/request_read.h"
#include "core/pool/quota.h"

gm_status gm__request_read(const gm_pool *pool, const gm_request *request, gm__want *out, gm_error *err) {
  const gm__guard *guard = pool->guard;
  const gm_status status = gm__want_read(&pool->heap, request, guard && gm__guard_writes(guard), out, err);
  if (!status && guard) gm__want_size(&pool->heap, gm__guard_bytes(guard, out->bytes, out->align), out);
  return status;
}

/* Allocates from a pool with a guard. The guard writes to the block, so a capture refuses it. Freed blocks that only
 * wait for their check are memory for the request, too. */
static gm_acquire alloc_guarded(gm_pool *pool, const gm__want *want, gm_block *out, gm__refusal *why) {
  GM__UNCANCELLED();
  if (gm__guard_writes(pool->guard) && gm__order_is_captured(want->stream, &why->failure)) {
    why->status = GM_ERR_BUSY;
    return gm__refusal_answer(why->status);
  }
  gm__grant grant;
  gm__guard_reap(pool->guard, false);
  gm_acquire answer = gm__heap_grant(&pool->heap, want, &grant, out, why);
  const bool short_of = answer == GM_ACQUIRE_EXHAUSTED || answer == GM_ACQUIRE_OVER_LIMIT;
  if (short_of && gm__guard_reap(pool->guard, true)) answer = gm__heap_grant(&pool->heap, want, &grant, out, why);
  if (answer > GM_ACQUIRE_NEEDS_BARRIER) return answer;
  answer = gm__guard_hand_out(pool->guard, want, &grant, answer, out);
  if (answer == GM_ACQUIRE_FRESH) gm__keep_tend(&pool->heap);
  gm__keep_hold(&pool->heap, want->stream, false);
  return answer;
}

gm_acquire gm__alloc_one(gm_pool *pool, gm__want *want, gm_block *out, gm__refusal *why) {
  why->status = gm__pool_take_quota(pool, want, &why->failure);
  if (why->status) {
    gm__ladder_blame(want->ladder, GM_CAUSE_QUOTA);
    return gm__refusal_answer(why->status);
  }
  const gm_acquire answer =
      pool->guard ? alloc_guarded(pool, want, out, why) : gm__heap_alloc(&pool->heap, want, out, why);
  if (answer > GM_ACQUIRE_NEEDS_BARRIER) gm__pool_return_quota(pool, want);
  return answer;
}
