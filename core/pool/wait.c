#include "core/pool/wait.h"

#include <inttypes.h>

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/poll.h"
#include "core/device/turn.h"
#include "core/device/watch.h"
#include "core/heap/headroom.h"
#include "core/pool/try_alloc.h"
#include "gm/quota.h"

/* Invariants. Nobody tells a waiting request of a free, so that frees cost nothing. The request that is first looks at
 * the counters of all pools of the device, and tries again when one has moved. It also tries now and then without such
 * a sign: a stream may have passed, another process may have gone. Others sleep until they are first. Evictors are
 * asked in the first try only. */

enum { WAIT_LOOKS = 16 }; /* so many looks without a sign bring a try; the pauses between them are a millisecond */

typedef struct wait_signs {
  uint64_t frees, cap, pooled, moves;
} wait_signs;

static wait_signs wait_look(const gm_pool *pool) {
  gm_stats arenas = {.struct_size = sizeof arenas};
  const gm__provider *provider = &pool->heap.provider;
  gm__arenas_add(&pool->heap.arenas, &arenas);
  return (wait_signs){.frees = arenas.frees + atomic_load_explicit(&provider->stats.frees, memory_order_relaxed),
                      .cap = gm__claim_cap(&provider->claim),
                      .pooled = gm__reclaimers_pooled(pool->device, NULL, UINT64_MAX),
                      .moves = gm__reclaimers_moves(pool->device)};
}

static bool wait_signs_are_same(const wait_signs *one, const wait_signs *other) {
  return one->frees == other->frees && one->cap == other->cap && one->pooled == other->pooled &&
         one->moves == other->moves;
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
static bool wait_is_due(const gm_pool *pool, wait_signs *seen, uint32_t *looks) {
  const wait_signs now = wait_look(pool);
  const bool due = *looks % WAIT_LOOKS == 0 || !wait_signs_are_same(seen, &now);
  *seen = now;
  *looks = due ? 1 : *looks + 1;
  return due;
}

static gm_acquire wait_too_long(gm__want *want, gm__refusal *why) {
  const gm_error last = why->failure;
  want->ladder->behind = why->status;
  why->status = gm__fail_native(&why->failure, GM_ERR_TIMEOUT, last.native_code, "gm_alloc",
                                "no memory within %" PRIu64 " ns: %s", want->deadline_ns,
                                why->status ? last.message : "requests that came before are still waiting");
  return gm__refusal_answer(why->status);
}

/* True: that is the end of it, with memory or without. */
static bool wait_try(gm_pool *pool, gm__want *want, const gm_request *request, gm_block *out, gm__refusal *why,
                     gm_acquire *answer) {
  *answer = gm__try_alloc(pool, want, request, out, why);
  if (*answer <= GM_ACQUIRE_NEEDS_BARRIER || !wait_may_help(pool, want, why->status)) return true;
  if (!want->patient) gm__watches_hear(pool->device);
  want->patient = true;
  return false;
}

/* Waits in the order of the device. False: the deadline passed. */
static bool wait_in_turn(gm_pool *pool, gm__want *want, const gm_request *request, gm_block *out, gm__refusal *why,
                         gm_acquire *answer, uint64_t deadline) {
  gm_device *device = pool->device;
  gm__turn turn;
  wait_signs seen = {0};
  uint32_t looks = 0;
  bool done = false;
  gm__turn_begin(device, &turn, pool);
  for (gm__poll poll = gm__poll_until(deadline); !done && gm__turn_await(device, &turn, deadline);) {
    if (wait_is_due(pool, &seen, &looks) || gm__deadline_passed(deadline)) {
      done = wait_try(pool, want, request, out, why, answer);
      if (!done) gm__turn_narrow(device, &turn, gm__headroom_is_of_pool(&pool->heap, want));
    }
    if (!done && !gm__poll_again(&poll)) break;
  }
  gm__turn_end(device, &turn);
  return done;
}

gm_acquire gm__wait_alloc(gm_pool *pool, gm__want *want, const gm_request *request, gm_block *out, gm__refusal *why) {
  GM__UNCANCELLED();
  const uint64_t deadline = gm__deadline_after(want->deadline_ns);
  gm_acquire answer = GM_ACQUIRE_EXHAUSTED;
  gm__refusal_begin(why);
  if (!gm__turns_wait(pool->device) && wait_try(pool, want, request, out, why, &answer)) return answer;
  const uint64_t began = gm__now_ns();
  const bool done = wait_in_turn(pool, want, request, out, why, &answer, deadline);
  gm__ladder_step(want->ladder, GM_RUNG_WAIT, began, 0);
  want->ladder->waited_ns = gm__now_ns() - began;
  return done ? answer : wait_too_long(want, why);
}
