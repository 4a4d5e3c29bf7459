#include "core/pool/wait_step.h"

#include <inttypes.h>

#include "core/base/error.h"
#include "core/device/watch.h"
#include "core/heap/headroom.h"
#include "core/pool/try_alloc.h"
#include "gm/quota.h"

/* Invariants. Nobody tells a waiting request of a free, so that frees cost nothing. The request that is first looks at
 * the counters of all pools of the device, and tries again when one has moved. It also tries now and then without such
 * a sign: a stream may have passed, another process may have gone. Evictors are asked in the first try only. */

enum { WAIT_LOOKS = 16 }; /* so many looks without a sign bring a try; the pauses between them are a millisecond */

/* The counters as one number. Others look the same by chance alone, and then the next try is late, not missing. */
static uint64_t wait_signs(const gm_pool *pool) {
  static const uint64_t mix = UINT64_C(0x9e3779b97f4a7c15);
  gm_stats arenas = {.struct_size = sizeof arenas};
  const gm__provider *provider = &pool->heap.provider;
  gm__arenas_add(&pool->heap.arenas, &arenas);
  uint64_t signs = arenas.frees + atomic_load_explicit(&provider->stats.frees, memory_order_relaxed);
  signs = signs * mix + gm__claim_cap(&provider->claim);
  signs = signs * mix + gm__reclaimers_pooled(pool->device, NULL, UINT64_MAX);
  return signs * mix + gm__reclaimers_moves(pool->device);
}

/* More than the tag may ever have. */
static bool wait_is_over_quota(gm_pool *pool, const gm__want *want) {
  gm_quota quota = {.struct_size = sizeof quota};
  if (gm_pool_quota(pool, want->tag, &quota, NULL)) return false;
  return quota.bytes != GM_NO_QUOTA && !(quota.flags & GM_QUOTA_BORROW) && want->bytes > quota.bytes;
}

/* Was the request refused for lack of memory that somebody may free? */
static bool wait_may_help(gm_pool *pool, const gm__want *want, gm_status status) {
  const uint64_t total = pool->heap.provider.has_upstream ? 0 : pool->device->info.total_bytes;
  if (!gm__is_shortage(status) || status == GM_ERR_ALLOCATION_TOO_LARGE) return false;
  if ((total && want->exact > total) || want->exact > gm__claim_cap(&pool->heap.provider.claim)) return false;
  return !wait_is_over_quota(pool, want);
}

/* True when a try is due. */
static bool wait_is_due(const gm_pool *pool, gm__wait_looks *looks) {
  const uint64_t signs = wait_signs(pool);
  const bool due = looks->count % WAIT_LOOKS == 0 || signs != looks->signs;
  looks->signs = signs;
  looks->count = due ? 1 : looks->count + 1;
  return due;
}

gm_acquire gm__wait_too_long(gm__want *want, gm__refusal *why) {
  const gm_error last = why->failure;
  want->ladder->behind = why->status;
  why->status = gm__fail_native(&why->failure, GM_ERR_TIMEOUT, last.native_code, "gm_alloc",
                                "no memory within %" PRIu64 " ns: %s", want->deadline_ns,
                                why->status ? last.message : "requests that came before are still waiting");
  return gm__refusal_answer(why->status);
}

bool gm__wait_try(gm_pool *pool, gm__want *want, const gm_request *request, gm_block *out, gm__refusal *why,
                  gm_acquire *answer) {
  *answer = gm__try_alloc(pool, want, request, out, why);
  if (*answer <= GM_ACQUIRE_NEEDS_BARRIER || !wait_may_help(pool, want, why->status)) return true;
  if (!want->patient) gm__watches_hear(pool->device);
  want->patient = true;
  return false;
}

bool gm__wait_look(gm_pool *pool, gm__want *want, const gm_request *request, gm_block *out, gm__refusal *why,
                   gm_acquire *answer, gm__wait_looks *looks, bool last) {
  if (!wait_is_due(pool, looks) && !last) return false;
  if (gm__wait_try(pool, want, request, out, why, answer)) return true;
  looks->narrow = gm__headroom_is_of_pool(&pool->heap, want);
  return false;
}
