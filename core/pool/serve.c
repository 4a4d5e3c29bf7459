#include "core/pool/serve.h"

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/poll.h"
#include "core/device/turn.h"
#include "core/device/watch.h"
#include "core/pool/alloc_one.h"
#include "core/pool/wait_step.h"

/* Invariants. A thread that serves a future is its server, and only that thread writes its answer. Once it is out of
 * the queue and DONE, its owner may end it, the pool and the device. So its server touches none of them after that. */

static gm_future *serve_future_of(gm_turn *turn) { return (gm_future *)((char *)turn - offsetof(gm_future, turn)); }

static gm_pool *serve_pool_of(const gm_future *future) { return (gm_pool *)future->turn.pool; }

static void serve_answer(gm_future *future, gm_acquire answer, gm_status status) {
  future->answer = answer;
  future->status = status;
}

/* Leaves the queue, and calls back. REQUIRES: this thread is the server, and has answered. */
static void serve_end(gm_future *future, bool silent) {
  gm_device *device = serve_pool_of(future)->device;
  gm__mutex_lock(&device->turn_lock);
  gm__turn_remove(device, &future->turn);
  const gm_future_callback callback = silent ? NULL : future->callback;
  gm__future_set_state(future, GM__FUTURE_CALLS);
  gm__mutex_unlock(&device->turn_lock);
  if (callback) callback(future->user, future);
  gm__future_set_state(future, GM__FUTURE_DONE);
}

/* The wait is over. */
static void serve_time(const gm_future *future, gm__ladder *ladder) {
  gm__ladder_step(ladder, GM_RUNG_WAIT, future->turn.joined, 0);
  ladder->waited_ns = gm__now_ns() - future->turn.joined;
}

/* True: the request has come to its end. */
static bool serve_request(gm_future *future, gm__want *want, bool first, bool late) {
  gm_pool *pool = serve_pool_of(future);
  gm__refusal why;
  gm_acquire answer = GM_ACQUIRE_EXHAUSTED;
  gm__wait_looks looks = {future->seen, future->looks, future->turn.narrow};
  gm__refusal_begin(&why);
  bool done = first && gm__wait_look(pool, want, &future->request, &future->block, &why, &answer, &looks, late);
  if (done || late) serve_time(future, want->ladder);
  if (!done && late) answer = gm__wait_too_long(want, &why);
  done |= late;
  future->seen = looks.signs;
  future->looks = looks.count;
  future->narrow = looks.narrow;
  future->patient = want->patient;
  gm__ladder_add(pool->heap.provider.rungs, want->ladder);
  if (!done) return false;
  if (answer == GM_ACQUIRE_FRESH) gm__watches_hear(pool->device);
  serve_answer(future, why.status ? gm__heap_refuse(&pool->heap, want, &why) : answer, why.status);
  return true;
}

static bool serve_try(gm_future *future, bool first) {
  gm__want want;
  gm__ladder ladder;
  gm_pool *pool = serve_pool_of(future);
  const bool lost = atomic_load(&pool->device->lost);
  const gm_status status = lost ? GM_ERR_DEVICE_LOST : gm__request_read(pool, &future->request, &want, NULL);
  if (status) {
    serve_answer(future, lost ? GM_ACQUIRE_FAILED : GM_ACQUIRE_INVALID, status);
    return true;
  }
  gm__ladder_begin(&ladder);
  want.ladder = &ladder;
  want.patient = future->patient;
  return serve_request(future, &want, first, gm__deadline_passed(future->turn.deadline));
}

static void serve_one(gm_turn *turn, bool first) {
  gm_future *future = serve_future_of(turn);
  if (serve_try(future, first)) {
    serve_end(future, false);
  } else {
    gm__turn_put(serve_pool_of(future)->device, turn, future->narrow);
  }
}

void gm__futures_serve(gm_device *device) {
  GM__UNCANCELLED();
  const uint64_t since = gm__now_ns();
  bool first = false;
  for (gm_turn *turn; (turn = gm__turn_pick(device, since, &first));) serve_one(turn, first);
}

/* The next future to serve, of any device that has pools. Its server keeps its pool and its device. */
static gm_turn *serve_next(gm_context *ctx, uint64_t since, bool *out_first) {
  gm_turn *turn = NULL;
  gm__mutex_lock(&ctx->lock);
  for (gm_pool *pool = ctx->slots[GM__SLOT_POOLS]; pool && !turn; pool = pool->next) {
    if (gm__turns_wait(pool->device)) turn = gm__turn_pick(pool->device, since, out_first);
  }
  gm__mutex_unlock(&ctx->lock);
  return turn;
}

void gm__futures_poll(gm_context *ctx) {
  GM__UNCANCELLED();
  const uint64_t since = gm__now_ns();
  bool first = false;
  for (gm_turn *turn; (turn = serve_next(ctx, since, &first));) serve_one(turn, first);
}

/* Ends those that nobody serves. A callback may ask for more: those end without a callback. False: another thread still
 * serves one. */
static bool serve_end_all(gm_pool *pool, uint64_t since) {
  bool busy = false;
  for (gm_turn *turn; (turn = gm__turn_pick_of(pool->device, pool, &busy));) {
    serve_answer(serve_future_of(turn), GM_ACQUIRE_INVALID, GM_ERR_CANCELLED);
    serve_end(serve_future_of(turn), turn->joined > since);
  }
  return !busy;
}

void gm__futures_end(gm_pool *pool) {
  const uint64_t since = gm__now_ns();
  for (gm__poll poll = gm__poll_until(GM__NEVER); !serve_end_all(pool, since);) gm__poll_again(&poll);
}
