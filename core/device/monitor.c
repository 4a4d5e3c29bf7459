/* The monitor of a context: a thread that polls. Invariants: `started` holds from the creation of the thread until it
 * is joined. One thread joins it, `joining`. The thread takes the lock no more once `ended` is set. */
#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/thread_here.h"
#include "core/device/watch.h"

static const uint64_t monitor_least_ns = 1000000, monitor_usual_ns = 100000000;

typedef struct monitor {
  gm_context *ctx;
  gm__mutex lock;
  gm__cond turn; /* something below has changed */
  gm__thread thread;
  const void *self; /* the thread's name for itself, while it runs */
  uint64_t interval_ns;
  bool started, stop, ended, joining;
} monitor;

static void monitor_run(void *arg) {
  monitor *self = arg;
  gm__mutex_lock(&self->lock);
  self->self = &gm__here;
  while (!self->stop) {
    gm__mutex_unlock(&self->lock);
    gm_context_poll(self->ctx, NULL);
    if (gm__context_forked(self->ctx)) return; /* a callback forked, and this is the child */
    gm__mutex_lock(&self->lock);
    if (!self->stop) gm__cond_wait_until(&self->turn, &self->lock, gm__deadline_after(self->interval_ns));
  }
  self->self = NULL;
  self->ended = true;
  gm__mutex_unlock(&self->lock);
}

/* ---- stop ---- */

static void monitor_join(monitor *self) {
  self->joining = true;
  gm__mutex_unlock(&self->lock);
  gm__thread_join(&self->thread);
  gm__mutex_lock(&self->lock);
  self->joining = self->started = self->stop = self->ended = false;
  gm__cond_broadcast(&self->turn);
}

static void monitor_stop(monitor *self) {
  gm__mutex_lock(&self->lock);
  self->stop = self->started;
  gm__cond_broadcast(&self->turn);
  if (self->joining) {
    while (self->joining) gm__cond_wait(&self->turn, &self->lock);
  } else if (self->started && self->self != &gm__here) {
    monitor_join(self);
  }
  gm__mutex_unlock(&self->lock);
}

static void monitor_destroy(void *object, bool forked) {
  monitor *self = object;
  if (!forked) {
    monitor_stop(self);
    gm__mutex_destroy(&self->lock);
    gm__cond_destroy(&self->turn);
  }
  gm__release(gm__context_services(self->ctx), self, sizeof *self);
}

/* ---- start ---- */

/* NULL: there is no host memory for one. */
static monitor *monitor_get(gm_context *ctx) {
  monitor *there = gm__context_hung(ctx, GM__SLOT_MONITOR);
  monitor *self = there ? NULL : gm__alloc(gm__context_services(ctx), sizeof *self);
  if (!self) return there;
  self->ctx = ctx;
  gm__mutex_init(&self->lock, GM__RANK_LEAF);
  gm__cond_init(&self->turn);
  there = gm__context_hang(ctx, GM__SLOT_MONITOR, monitor_destroy, self);
  if (there != self) monitor_destroy(self, false);
  return there;
}

/* Starts the thread, or has a running one go on. REQUIRES: monitor lock. */
static gm_status monitor_start(monitor *self, gm_error *err) {
  if (self->ended) {
    gm__thread_join(&self->thread); /* it stopped itself */
    self->started = self->ended = false;
  }
  self->stop = false;
  gm__cond_broadcast(&self->turn);
  if (self->started) return GM_OK;
  const gm_status status = gm__thread_create(&self->thread, "gm-monitor", monitor_run, self, err);
  self->started = !status;
  return status;
}

gm_status gm_monitor_start(gm_context *ctx, uint64_t interval_ns, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_monitor_start";
  gm_status status = gm__context_check(ctx, op, err);
  if (!status) status = gm__watches_prepare(ctx, op, err);
  if (status) return status;
  monitor *self = monitor_get(ctx);
  if (!self) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for a monitor");
  gm__mutex_lock(&self->lock);
  if (self->joining) {
    status = gm__fail(err, GM_ERR_BUSY, op, "another thread stops the monitor");
  } else {
    self->interval_ns = interval_ns ? gm__max(interval_ns, monitor_least_ns) : monitor_usual_ns;
    status = monitor_start(self, err);
  }
  gm__mutex_unlock(&self->lock);
  return status;
}

gm_status gm_monitor_stop(gm_context *ctx, gm_error *err) {
  GM__UNCANCELLED();
  if (!ctx) return gm__bad_argument(err, "gm_monitor_stop", "`ctx` is NULL");
  if (gm__context_forked(ctx)) return GM_OK; /* a child has no monitor */
  monitor *self = gm__context_hung(ctx, GM__SLOT_MONITOR);
  if (self) monitor_stop(self);
  return GM_OK;
}
