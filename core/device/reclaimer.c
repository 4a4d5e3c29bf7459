#include "core/device/reclaimer.h"

#include "core/base/clock.h"
#include "core/base/poll.h"
#include "core/base/saturate.h"
#include "core/device/device.h"

/* Invariants. A reclaimer that has memory is in the list, and one without may rest beside it. A walk finds that it has
 * none, and it says itself when it has some again. Both change `resting`, one after the other: the later one sees what
 * the earlier one had done.
 *
 * A reclaimer with pins, which are counted inside the context's lock, stays in the list and alive. Two
 * pools that are refused at the same time trim one after the other, by the device's trim_lock. A trim submits, and an
 * engine's hook may wait for a thread that comes here, so nobody waits for that turn for ever. */

static const uint64_t reclaimer_patience_ns = 1000000000;

enum { RECLAIMER_PIECE = 256 }; /* so many are looked at inside the context's lock, until other threads may enter */

/* REQUIRES: context lock, for these two. */
static void reclaimer_link_first(gm_device *device, gm__reclaimer *reclaimer) {
  reclaimer->prev = NULL;
  reclaimer->next = device->reclaimers;
  *(reclaimer->next ? &reclaimer->next->prev : &device->last_reclaimer) = reclaimer;
  device->reclaimers = reclaimer;
  device->reclaimer_count++;
}

static void reclaimer_unlink(gm_device *device, const gm__reclaimer *reclaimer) {
  *(reclaimer->next ? &reclaimer->next->prev : &device->last_reclaimer) = reclaimer->prev;
  *(reclaimer->prev ? &reclaimer->prev->next : &device->reclaimers) = reclaimer->next;
  device->reclaimer_count--;
}

/* Takes a reclaimer without memory out of the list. False: it has some, or is a walk's place. */
static bool reclaimer_rest(gm_device *device, gm__reclaimer *reclaimer) {
  if (reclaimer->pins || reclaimer->held(reclaimer->user)) return false;
  atomic_fetch_or(&reclaimer->resting, 1);
  if (reclaimer->held(reclaimer->user)) {
    atomic_store(&reclaimer->resting, 0);
    return false;
  }
  reclaimer_unlink(device, reclaimer);
  return true;
}

void gm__reclaimer_took(gm_device *device, gm__reclaimer *reclaimer) {
  if (!atomic_fetch_or(&reclaimer->resting, 0)) return;
  gm__mutex_lock(&device->ctx->lock);
  if (reclaimer->listed && atomic_exchange(&reclaimer->resting, 0)) reclaimer_link_first(device, reclaimer);
  gm__mutex_unlock(&device->ctx->lock);
}

/* The reclaimer comes last. */
static void reclaimer_put_back(gm_device *device, gm__reclaimer *reclaimer) {
  if (!reclaimer->next) return;
  reclaimer_unlink(device, reclaimer);
  reclaimer->prev = device->last_reclaimer;
  reclaimer->next = NULL;
  device->last_reclaimer->next = reclaimer;
  device->last_reclaimer = reclaimer;
  device->reclaimer_count++;
}

void gm__device_add_reclaimer(gm_device *device, gm__reclaimer *reclaimer) {
  gm__mutex_lock(&device->ctx->lock);
  const bool rests = !reclaimer->held(reclaimer->user); /* no other thread uses it yet */
  reclaimer->listed = true;
  atomic_store(&reclaimer->resting, rests);
  if (!rests) reclaimer_link_first(device, reclaimer);
  gm__mutex_unlock(&device->ctx->lock);
}

static bool reclaimer_leave(gm_device *device, gm__reclaimer *reclaimer) {
  gm__mutex_lock(&device->ctx->lock);
  const bool free = !reclaimer->pins;
  if (free && !atomic_load(&reclaimer->resting)) reclaimer_unlink(device, reclaimer);
  if (free) reclaimer->listed = false;
  gm__mutex_unlock(&device->ctx->lock);
  return free;
}

bool gm__device_remove_reclaimer(gm_device *device, gm__reclaimer *reclaimer) {
  for (gm__poll poll = gm__poll_until(gm__deadline_after(reclaimer_patience_ns));;) {
    if (reclaimer_leave(device, reclaimer)) return true;
    if (!gm__poll_again(&poll)) return false;
  }
}

bool gm__reclaimer_pin(gm__reclaimer *reclaimer) {
  reclaimer->pins += reclaimer->listed;
  return reclaimer->listed;
}

void gm__reclaimer_unpin(gm__reclaimer *reclaimer) { reclaimer->pins--; }

/* Steps to the one behind `from` (NULL: the first) that is not `self` and keeps anything. False: no look is left, and
 * *out is where to go on. True with NULL: there is none. REQUIRES: context lock. */
static bool reclaimer_behind(const gm_device *device, const gm__reclaimer *self, const gm__reclaimer *from,
                             gm__reclaimer **out) {
  *out = from ? from->next : device->reclaimers;
  for (int looks = 0; *out && (*out == self || !(*out)->pooled((*out)->user)); *out = (*out)->next) {
    if (++looks == RECLAIMER_PIECE) return false;
  }
  return true;
}

/* The next one with a pin, which moves on with each step. */
static gm__reclaimer *reclaimer_next(gm_device *device, const gm__reclaimer *self, gm__reclaimer *from) {
  gm__reclaimer *next;
  for (bool found = false; !found; from = next) {
    gm__mutex_lock(&device->ctx->lock);
    found = reclaimer_behind(device, self, from, &next);
    if (next) next->pins++;
    if (from) from->pins--;
    gm__mutex_unlock(&device->ctx->lock);
  }
  return next;
}

/* Leaves the lock for a moment. `at` (NULL: none) stays where it is. REQUIRES: context lock. */
static void reclaimer_breathe(gm_device *device, gm__reclaimer *at) {
  if (at) at->pins++;
  gm__mutex_unlock(&device->ctx->lock);
  gm__mutex_lock(&device->ctx->lock);
  if (at) at->pins--;
}

static void reclaimer_unpin(gm_device *device, gm__reclaimer *reclaimer) {
  gm__mutex_lock(&device->ctx->lock);
  if (reclaimer) reclaimer->pins--;
  gm__mutex_unlock(&device->ctx->lock);
}

/* One that comes last meanwhile, by this walk or another one, was seen to keep nothing. So as many looks as there were
 * reclaimers suffice. */
uint64_t gm__reclaimers_pooled(gm_device *device, const gm__reclaimer *self, uint64_t enough) {
  uint64_t bytes = 0;
  gm__mutex_lock(&device->ctx->lock);
  uint32_t left = device->reclaimer_count;
  for (gm__reclaimer *at = device->reclaimers, *next; at && left && bytes < enough; at = next) {
    const uint64_t pooled = at == self ? 0 : at->pooled(at->user);
    next = at->next;
    bytes += pooled;
    if (at != self && !pooled && !at->pins && !reclaimer_rest(device, at)) reclaimer_put_back(device, at);
    if (--left % RECLAIMER_PIECE == 0) reclaimer_breathe(device, next);
  }
  gm__mutex_unlock(&device->ctx->lock);
  return bytes;
}

uint64_t gm__reclaimers_moves(const gm_device *device) {
  return atomic_load_explicit(&device->moves, memory_order_relaxed);
}

uint64_t gm__reclaimers_idle(gm_device *device, const gm__reclaimer *self, uint64_t enough) {
  uint64_t bytes = 0, idle = 0;
  gm__reclaimer *other = NULL;
  gm__reclaimers_pooled(device, self, 1); /* the first one keeps something from now on */
  const bool turn = gm__poll_lock(&device->trim_lock, reclaimer_patience_ns);
  while (idle < enough && (other = reclaimer_next(device, self, other))) {
    bytes += other->idle(other->user);
    idle = gm__min(bytes, atomic_load_explicit(&device->pooled_bytes, memory_order_relaxed)); /* or not the device's */
  }
  reclaimer_unpin(device, other);
  if (turn) gm__mutex_unlock(&device->trim_lock);
  return idle;
}

uint64_t gm__reclaimers_trim(gm_device *device, const gm__reclaimer *self, uint64_t bytes) {
  uint64_t given = 0, freed = 0;
  gm__reclaimer *other = NULL;
  gm__reclaimers_pooled(device, self, 1); /* the first one keeps something from now on */
  const bool turn = gm__poll_lock(&device->trim_lock, reclaimer_patience_ns);
  const uint64_t held = atomic_load_explicit(&device->own_bytes, memory_order_relaxed);
  while (freed < bytes && (other = reclaimer_next(device, self, other))) {
    given += other->give(other->user, gm__sub_sat(other->pooled(other->user), bytes - freed));
    freed = gm__sub_sat(held, atomic_load_explicit(&device->own_bytes, memory_order_relaxed));
  }
  reclaimer_unpin(device, other);
  if (turn) gm__mutex_unlock(&device->trim_lock);
  return given;
}
