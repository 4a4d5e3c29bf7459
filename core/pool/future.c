#include "gm/future.h"

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/poll.h"
#include "core/device/turn.h"
#include "core/pool/alloc_one.h"
#include "core/pool/serve.h"
#include "core/pool/wait.h"

/* Invariant: a future that is served at once is in no list, and nobody else knows of it. */

#define FUTURE_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define FUTURE_APART static __attribute__((noinline))

static gm_pool *future_pool(const gm_future *future) { return (gm_pool *)future->turn.pool; }

/* ---- asking ---- */

/* gm_alloc tells no reason. gm_explain has more of it. */
static gm_status future_status(const gm_pool *pool, gm_acquire answer) {
  switch (answer) {
    case GM_ACQUIRE_EXHAUSTED: return GM_ERR_OUT_OF_DEVICE_MEMORY;
    case GM_ACQUIRE_OVER_LIMIT: return GM_ERR_OVER_LIMIT;
    case GM_ACQUIRE_INVALID: return GM_ERR_INVALID_ARGUMENT;
    default: break;
  }
  if (gm__pool_forked(pool)) return GM_ERR_FORKED;
  return atomic_load(&pool->device->lost) ? GM_ERR_DEVICE_LOST : GM_ERR_DRIVER;
}

FUTURE_APART bool future_refused(const gm_pool *pool, gm_acquire answer, gm_future *out) {
  *out = (gm_future){.answer = answer, .status = future_status(pool, answer), .state = GM__FUTURE_DONE};
  return true;
}

/* Does the pool take such requests? */
static gm_acquire future_check(const gm_pool *pool, const gm_request *request) {
  gm__want want;
  if (!gm__pool_lives(pool) || !request) return GM_ACQUIRE_INVALID;
  if (gm__pool_forked(pool)) return GM_ACQUIRE_FAILED;
  return gm__request_read(pool, request, &want, NULL) ? GM_ACQUIRE_INVALID : GM_ACQUIRE_OK;
}

/* REQUIRES: the future is in no queue. */
static void future_init(gm_future *out, gm_pool *pool, const gm_request *request, bool tried) {
  const uint64_t deadline = request->deadline_ns ? gm__deadline_after(request->deadline_ns) : GM__NEVER;
  *out = (gm_future){.request = *request,
                     .turn = {.pool = pool, .deadline = deadline, .joined = gm__now_ns(), .serves = true},
                     .state = GM__FUTURE_WAITS,
                     .patient = tried};
}

static bool future_waits(const gm_pool *pool, const gm_future *future) {
  gm_device *device = pool->device;
  if (!gm__pool_lives(pool) || gm__pool_forked(pool)) return false;
  gm__mutex_lock(&device->turn_lock);
  const bool waits = gm__turn_has(device, &future->turn);
  gm__mutex_unlock(&device->turn_lock);
  return waits;
}

FUTURE_APART bool future_join(gm_pool *pool, const gm_request *request, gm_future *out, bool tried) {
  GM__UNCANCELLED();
  if (future_waits(pool, out)) {
    gm__log(gm__context_services(pool->ctx), GM_LOG_WARN, "gm_alloc_async: the future waits already");
    return false;
  }
  const gm_acquire answer = future_check(pool, request);
  if (answer) return future_refused(pool, answer, out);
  const gm_request asked = *request; /* it may be that of this future */
  future_init(out, pool, &asked, tried);
  gm__turn_begin(pool->device, &out->turn);
  atomic_store(&pool->ctx->on_wait, gm__futures_poll);
  return false;
}

bool gm_alloc_async(gm_pool *pool, const gm_request *request, gm_future *out) {
  if (FUTURE_UNLIKELY(!out)) return true;
  const bool known = gm__pool_is(pool) && pool->device;
  if (FUTURE_UNLIKELY(known && gm__turns_wait(pool->device))) return future_join(pool, request, out, false);
  if (FUTURE_UNLIKELY(!known || !request)) return future_refused(pool, GM_ACQUIRE_INVALID, out);
  gm__leaves = request;
  const gm_acquire answer = gm_alloc(pool, request, &out->block);
  gm__leaves = NULL;
  if (FUTURE_UNLIKELY(answer == GM__ACQUIRE_LATER)) return future_join(pool, request, out, true);
  if (FUTURE_UNLIKELY(answer > GM_ACQUIRE_NEEDS_BARRIER)) return future_refused(pool, answer, out);
  out->answer = answer;
  out->status = GM_OK;
  out->state = GM__FUTURE_DONE;
  return true;
}

/* ---- looking ---- */

/* The server's own thread, in the callback. */
static bool future_is_mine(const gm_future *future) { return future->turn.server == gm__turn_self(); }

/* A forked child has no queue: the future ends there by itself. */
static bool future_ends_forked(gm_future *future) {
  if (!gm__pool_forked(future_pool(future))) return false;
  future->answer = GM_ACQUIRE_FAILED;
  future->status = GM_ERR_FORKED;
  gm__future_set_state(future, GM__FUTURE_DONE);
  return true;
}

FUTURE_APART bool future_look(gm_future *future, uint32_t state) {
  GM__UNCANCELLED();
  if (state == GM__FUTURE_CALLS && future_is_mine(future)) return true;
  if (!state) return false;
  if (future_ends_forked(future)) return true;
  if (state == GM__FUTURE_WAITS) gm__futures_serve(future_pool(future)->device);
  return gm__future_state(future) == GM__FUTURE_DONE;
}

bool gm_future_done(gm_future *future) {
  if (FUTURE_UNLIKELY(!future)) return false;
  const uint32_t state = gm__future_state(future);
  return state == GM__FUTURE_DONE || future_look(future, state);
}

static gm_status future_started(const gm_future *future, const char *op, gm_error *err) {
  if (!future) return gm__bad_argument(err, op, "`future` is NULL");
  const uint32_t state = gm__future_state(future);
  if (state < GM__FUTURE_DONE || state > GM__FUTURE_CALLS) return gm__bad_argument(err, op, "`future` was not started");
  return GM_OK;
}

gm_status gm_future_wait(gm_future *future, uint64_t timeout_ns, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_future_wait";
  const gm_status status = future_started(future, op, err);
  if (status) return status;
  for (gm__poll poll = gm__poll_until(gm__deadline_after(timeout_ns)); !gm_future_done(future);) {
    if (!gm__poll_again(&poll)) return gm__fail(err, GM_ERR_TIMEOUT, op, "the future still waits for memory");
  }
  return GM_OK;
}

/* ---- calling back, and giving up ---- */

/* How a future stands, for a call that wants to change it. */
typedef enum future_grip {
  FUTURE_OVER,   /* it is done, or this thread is in its callback */
  FUTURE_TAKEN,  /* another thread serves it */
  FUTURE_MINE,   /* this thread serves it */
  FUTURE_QUEUED, /* it waits, and nobody serves it. The turn lock is locked */
} future_grip;

static future_grip future_take(gm_future *future) {
  const uint32_t state = gm__future_state(future);
  if (state == GM__FUTURE_DONE) return FUTURE_OVER;
  if (state == GM__FUTURE_CALLS) return future_is_mine(future) ? FUTURE_OVER : FUTURE_TAKEN;
  if (future_ends_forked(future)) return FUTURE_OVER;
  gm_device *device = future_pool(future)->device;
  gm__mutex_lock(&device->turn_lock);
  const bool queued = gm__future_state(future) == GM__FUTURE_WAITS;
  if (queued && !future->turn.server) return FUTURE_QUEUED;
  const bool mine = queued && future_is_mine(future);
  gm__mutex_unlock(&device->turn_lock);
  return mine ? FUTURE_MINE : FUTURE_TAKEN;
}

/* Like future_take, but it waits for other threads. */
static future_grip future_take_wait(gm_future *future) {
  future_grip grip;
  for (gm__poll poll = gm__poll_until(GM__NEVER); (grip = future_take(future)) == FUTURE_TAKEN;) gm__poll_again(&poll);
  return grip;
}

gm_status gm_future_on_done(gm_future *future, gm_future_callback callback, void *user, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_future_on_done";
  const gm_status status = future_started(future, op, err);
  if (status) return status;
  if (!callback) return gm__bad_argument(err, op, "`callback` is NULL");
  const future_grip grip = future_take_wait(future);
  if (grip == FUTURE_MINE) return gm__fail(err, GM_ERR_BUSY, op, "this thread serves the future");
  if (grip == FUTURE_OVER) {
    callback(user, future);
    return GM_OK;
  }
  const bool has = future->callback != NULL;
  if (!has) {
    future->callback = callback;
    future->user = user;
  }
  gm__mutex_unlock(&future_pool(future)->device->turn_lock);
  return has ? gm__bad_argument(err, op, "the future has a callback already") : GM_OK;
}

gm_status gm_future_cancel(gm_future *future, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_future_cancel";
  const gm_status status = future_started(future, op, err);
  if (status) return status;
  const future_grip grip = future_take_wait(future);
  if (grip == FUTURE_MINE) return gm__fail(err, GM_ERR_BUSY, op, "this thread serves the future");
  if (grip == FUTURE_OVER) return GM_OK;
  gm_device *device = future_pool(future)->device;
  gm__turn_remove(device, &future->turn);
  future->answer = GM_ACQUIRE_EXHAUSTED;
  future->status = GM_ERR_CANCELLED;
  gm__future_set_state(future, GM__FUTURE_CALLS); /* DONE comes last: then others may end the device */
  gm__mutex_unlock(&device->turn_lock);
  gm__future_set_state(future, GM__FUTURE_DONE);
  return GM_OK;
}
