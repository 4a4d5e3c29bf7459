#include "core/device/reclaimer.h"

#include "core/base/clock.h"
#include "core/base/poll.h"
#include "core/base/saturate.h"
#include "core/device/device.h"

/* Invariant: a reclaimer with pins, which are counted inside the context's lock, stays in the list and alive. Two pools
 * that are refused at the same time trim one after the other, by the device's trim_lock. A trim submits, and an
 * engine's hook may wait for a thread that comes here, so nobody waits for that turn for ever. */

static const uint64_t reclaimer_patience_ns = 1000000000;

void gm__device_add_reclaimer(gm_device *device, gm__reclaimer *reclaimer) {
  gm__mutex_lock(&device->ctx->lock);
  reclaimer->listed = true;
  reclaimer->prev = NULL;
  reclaimer->next = device->reclaimers;
  if (reclaimer->next) reclaimer->next->prev = reclaimer;
  device->reclaimers = reclaimer;
  gm__mutex_unlock(&device->ctx->lock);
}

static bool reclaimer_unlink(gm_device *device, gm__reclaimer *reclaimer) {
  gm__mutex_lock(&device->ctx->lock);
  const bool free = !reclaimer->pins;
  if (free && reclaimer->next) reclaimer->next->prev = reclaimer->prev;
  if (free && reclaimer->prev) {
    reclaimer->prev->next = reclaimer->next;
  } else if (free) {
    device->reclaimers = reclaimer->next;
  }
  if (free) reclaimer->listed = false;
  gm__mutex_unlock(&device->ctx->lock);
  return free;
}

bool gm__device_remove_reclaimer(gm_device *device, gm__reclaimer *reclaimer) {
  for (gm__poll poll = gm__poll_until(gm__deadline_after(reclaimer_patience_ns));;) {
    if (reclaimer_unlink(device, reclaimer)) return true;
    if (!gm__poll_again(&poll)) return false;
  }
}

bool gm__reclaimer_pin(gm__reclaimer *reclaimer) {
  reclaimer->pins += reclaimer->listed;
  return reclaimer->listed;
}

void gm__reclaimer_unpin(gm__reclaimer *reclaimer) { reclaimer->pins--; }

/* The one behind `from` (NULL: the first) that is not `self`. NULL: there is none. REQUIRES: context lock. */
static gm__reclaimer *reclaimer_behind(const gm_device *device, const gm__reclaimer *self, const gm__reclaimer *from) {
  gm__reclaimer *next = from ? from->next : device->reclaimers;
  return next == self && next ? next->next : next;
}

/* The next one with a pin, which moves on with each step. */
static gm__reclaimer *reclaimer_next(gm_device *device, const gm__reclaimer *self, gm__reclaimer *from) {
  gm__mutex_lock(&device->ctx->lock);
  gm__reclaimer *next = reclaimer_behind(device, self, from);
  if (next) next->pins++;
  if (from) from->pins--;
  gm__mutex_unlock(&device->ctx->lock);
  return next;
}

static void reclaimer_unpin(gm_device *device, gm__reclaimer *reclaimer) {
  gm__mutex_lock(&device->ctx->lock);
  if (reclaimer) reclaimer->pins--;
  gm__mutex_unlock(&device->ctx->lock);
}

gm__reclaimable gm__reclaimers_read(const gm_device *device, const gm__reclaimer *self) {
  gm__reclaimable out = {0};
  gm__mutex_lock(&device->ctx->lock);
  for (gm__reclaimer *other = NULL; (other = reclaimer_behind(device, self, other));) {
    out.pooled += other->pooled(other->user);
    out.calls += other->calls(other->user);
  }
  gm__mutex_unlock(&device->ctx->lock);
  return out;
}

uint64_t gm__reclaimers_idle(gm_device *device, const gm__reclaimer *self) {
  uint64_t bytes = 0;
  const bool turn = gm__poll_lock(&device->trim_lock, reclaimer_patience_ns);
  for (gm__reclaimer *other = NULL; (other = reclaimer_next(device, self, other));) {
    if (other->pooled(other->user)) bytes += other->idle(other->user);
  }
  if (turn) gm__mutex_unlock(&device->trim_lock);
  return gm__min(bytes, atomic_load_explicit(&device->pooled_bytes, memory_order_relaxed)); /* or not the device's */
}

uint64_t gm__reclaimers_trim(gm_device *device, const gm__reclaimer *self, uint64_t bytes) {
  uint64_t given = 0;
  gm__reclaimer *other = NULL;
  const bool turn = gm__poll_lock(&device->trim_lock, reclaimer_patience_ns);
  const uint64_t held = atomic_load_explicit(&device->own_bytes, memory_order_relaxed);
  while ((other = reclaimer_next(device, self, other))) {
    const uint64_t freed = gm__sub_sat(held, atomic_load_explicit(&device->own_bytes, memory_order_relaxed));
    const uint64_t pooled = other->pooled(other->user);
    if (freed >= bytes) break;
    if (pooled) given += other->give(other->user, gm__sub_sat(pooled, bytes - freed));
  }
  reclaimer_unpin(device, other);
  if (turn) gm__mutex_unlock(&device->trim_lock);
  return given;
}
