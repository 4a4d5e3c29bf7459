#include "core/pool/wait.h"

#include "core/base/cancel.h"
#include "core/base/poll.h"
#include "core/device/turn.h"
#include "core/pool/serve.h"
#include "core/pool/wait_step.h"

/* Invariant: a thread that waits sleeps until it is first, or until a future is before it. Futures have no thread, so
 * those behind them serve them. */

_Thread_local const gm_request *gm__leaves GM__THREAD_DATA;

/* Waits in the order of the device. False: the deadline passed. */
static bool wait_in_turn(gm_pool *pool, gm__want *want, const gm_request *request, gm_block *out, gm__refusal *why,
                         gm_acquire *answer, uint64_t deadline) {
  gm_device *device = pool->device;
  gm_turn turn = {.pool = pool};
  gm__wait_looks looks = {0};
  bool done = false;
  gm__turn_begin(device, &turn);
  for (gm__poll poll = gm__poll_until(deadline); !done;) {
    const gm__standing standing = gm__turn_await(device, &turn, deadline);
    if (standing == GM__TURN_LATE) break;
    if (standing == GM__TURN_BEHIND) {
      gm__futures_serve(device);
    } else {
      done = gm__wait_look(pool, want, request, out, why, answer, &looks, gm__deadline_passed(deadline));
      if (!done) gm__turn_put(device, &turn, looks.narrow);
    }
    if (!done && !gm__poll_again(&poll)) break;
  }
  gm__turn_end(device, &turn);
  return done;
}

gm_acquire gm__wait_alloc(gm_pool *pool, gm__want *want, const gm_request *request, gm_block *out, gm__refusal *why) {
  GM__UNCANCELLED();
  const uint64_t deadline = gm__deadline_after(want->deadline_ns);
  const bool leaves = gm__leaves == request;
  gm_acquire answer = GM_ACQUIRE_EXHAUSTED;
  gm__refusal_begin(why);
  const bool tries = leaves || !gm__turns_wait(pool->device);
  if (tries && gm__wait_try(pool, want, request, out, why, &answer)) return answer;
  if (leaves) gm__refusal_begin(why);
  if (leaves) return GM__ACQUIRE_LATER;
  const uint64_t began = gm__now_ns();
  const bool done = wait_in_turn(pool, want, request, out, why, &answer, deadline);
  gm__ladder_step(want->ladder, GM_RUNG_WAIT, began, 0);
  want->ladder->waited_ns = gm__now_ns() - began;
  return done ? answer : gm__wait_too_long(want, why);
}
