#include "core/device/evictor.h"

#include <string.h>

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/base/thread_data.h"
#include "core/device/device.h"

/* Invariants: an evictor with calls stays in the list and alive. One that is gone is asked by nobody new. Whoever takes
 * the last call off one that is gone ends it, unless a thread waits in gm_evictor_unregister: then that thread does.
 *
 * A thread notes in marks of its own what it asks, not on its stack. An evictor must not throw. One that does leaves
 * nothing behind that points to the stack. Its mark is dropped when the thread asks evictors again. */

struct gm_evictor {
  gm__object head;
  gm_device *device;
  gm_evictor *next; /* in the order in which they are asked: under the device's evict_lock, as all below is */
  gm_evictor_params params;
  char name[32];
  uint32_t calls; /* threads that are at it */
  bool gone;
  bool awaited; /* a thread waits until `calls` is 0 */
};

static bool evictor_is_before(const gm_evictor *one, const gm_evictor *other) {
  if (one->params.priority != other->params.priority) return one->params.priority < other->params.priority;
  return one->params.cost < other->params.cost;
}

/* REQUIRES: evict lock. */
static void evictor_link(gm_device *device, gm_evictor *evictor) {
  gm_evictor **at = &device->evictors;
  while (*at && !evictor_is_before(evictor, *at)) at = &(*at)->next;
  evictor->next = *at;
  *at = evictor;
}

/* REQUIRES: evict lock. */
static void evictor_unlink(gm_device *device, const gm_evictor *evictor) {
  gm_evictor **at = &device->evictors;
  while (*at != evictor) at = &(*at)->next;
  *at = evictor->next;
}

/* ---- the devices that have evictors ---- */

static void evicting_add(gm_device *device) {
  gm_context *ctx = device->ctx;
  gm__mutex_lock(&ctx->lock);
  if (!device->evicting++) {
    device->next_evicting = ctx->evicting;
    ctx->evicting = device;
  }
  gm__mutex_unlock(&ctx->lock);
}

/* REQUIRES: context lock, but in a forked child. */
static void evicting_drop(gm_device *device) {
  gm_device **at = &device->ctx->evicting;
  if (--device->evicting) return;
  while (*at != device) at = &(*at)->next_evicting;
  *at = device->next_evicting;
}

gm_device *gm__evicting_pin(gm_context *ctx, uint64_t *id) {
  gm_device *found = NULL;
  gm__mutex_lock(&ctx->lock);
  for (gm_device *each = ctx->evicting; each; each = each->next_evicting) {
    if (each->id > *id && (!found || each->id < found->id)) found = each;
  }
  if (found) atomic_fetch_add(&found->children, 1);
  gm__mutex_unlock(&ctx->lock);
  if (found) *id = found->id;
  return found;
}

void gm__evicting_unpin(gm_device *device) { atomic_fetch_sub(&device->children, 1); }

/* The end of one that is not in the list. */
static void evictor_end(gm_evictor *evictor) {
  gm_device *device = evictor->device;
  const bool forked = gm__context_forked(device->ctx);
  if (!forked) gm__mutex_lock(&device->ctx->lock);
  evicting_drop(device);
  if (!forked) gm__mutex_unlock(&device->ctx->lock);
  gm__object_end(device->ctx, &evictor->head);
  atomic_fetch_sub(&device->children, 1);
}

/* Takes a call off. True: the caller ends the evictor once it has left the lock. REQUIRES: evict lock. */
static bool evictor_leave(gm_device *device, gm_evictor *evictor) {
  if (--evictor->calls || !evictor->gone) return false;
  if (evictor->awaited) {
    gm__cond_broadcast(&device->evict_done);
    return false;
  }
  evictor_unlink(device, evictor);
  return true;
}

/* ---- marks ---- */

enum { EVICTOR_MARKS = 4 }; /* devices whose evictors a thread asks at a time, one within the other */

typedef struct evictor_mark {
  const gm_device *device; /* NULL: unused */
  const void *pool;        /* as gm__evict_run.pool */
  gm_evictor *at;          /* the evictor that is being asked; it has one call of this thread */
  uint64_t serial;
  uintptr_t frame; /* where the stack was when the run began */
} evictor_mark;

static _Thread_local evictor_mark evictor_marks[EVICTOR_MARKS] GM__THREAD_DATA;

/* The mark of the run; NULL: it was dropped. */
static evictor_mark *evictor_mark_of(const gm__evict_run *run) {
  for (int i = 0; i < EVICTOR_MARKS; i++) {
    if (evictor_marks[i].device && evictor_marks[i].serial == run->serial) return &evictor_marks[i];
  }
  return NULL;
}

/* The mark of the run that the calling thread is in. NULL: none. */
static evictor_mark *evictor_mark_here(const gm_device *device) {
  for (int i = 0; i < EVICTOR_MARKS; i++) {
    if (evictor_marks[i].device == device) return &evictor_marks[i];
  }
  return NULL;
}

/* Drops the mark, and the call that it holds. */
static void evictor_mark_drop(evictor_mark *mark) {
  gm_evictor *at = mark->at;
  *mark = (evictor_mark){.device = NULL};
  if (!at) return;
  gm__mutex_lock(&at->device->evict_lock);
  const bool last = evictor_leave(at->device, at);
  gm__mutex_unlock(&at->device->evict_lock);
  if (last) evictor_end(at);
}

/* A run within another one begins further down the stack. One that began here or below has been left. */
static void evictor_marks_drop_left(uintptr_t frame) {
  for (int i = 0; i < EVICTOR_MARKS; i++) {
    if (evictor_marks[i].device && evictor_marks[i].frame <= frame) evictor_mark_drop(&evictor_marks[i]);
  }
}

/* ---- asking ---- */

__attribute__((noinline)) bool gm__evict_run_begin(gm__evict_run *run, gm_device *device) {
  static _Atomic uint64_t serials;
  *run = (gm__evict_run){.device = device};
  if (!atomic_load_explicit(&device->evictor_count, memory_order_relaxed)) return false;
  const uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
  evictor_marks_drop_left(frame);
  evictor_mark *mark = evictor_mark_here(NULL);
  if (evictor_mark_here(device) || !mark) return false;
  run->serial = atomic_fetch_add_explicit(&serials, 1, memory_order_relaxed) + 1;
  *mark = (evictor_mark){.device = device, .serial = run->serial, .frame = frame};
  return true;
}

void gm__evict_run_end(gm__evict_run *run) {
  evictor_mark *mark = evictor_mark_of(run);
  if (mark) evictor_mark_drop(mark);
}

void gm__evict_run_for(gm__evict_run *run, const void *pool) {
  evictor_mark *mark = evictor_mark_of(run);
  run->pool = pool;
  if (mark) mark->pool = pool;
}

bool gm__evict_run_is_of_pool(gm_device *device) {
  const evictor_mark *mark = evictor_mark_here(device);
  return mark && mark->pool;
}

static bool evictor_serves(const gm_evictor *evictor, const gm__evict_run *run) {
  return !evictor->gone && (!run->pool || !evictor->params.pool || evictor->params.pool == run->pool);
}

static gm_evictor *evictor_move(gm__evict_run *run, gm_evictor *from, gm_evictor *to) {
  gm_device *device = run->device;
  evictor_mark *mark = evictor_mark_of(run);
  if (!mark) return NULL;
  gm__mutex_lock(&device->evict_lock);
  if (!to) to = from ? from->next : device->evictors;
  while (to && to != from && !evictor_serves(to, run)) to = to->next;
  if (to && to != from) to->calls++;
  mark->at = to == from ? NULL : to;
  const bool last = from && evictor_leave(device, from);
  gm__mutex_unlock(&device->evict_lock);
  if (last) evictor_end(from);
  return to;
}

gm_evictor *gm__evict_run_next(gm__evict_run *run, gm_evictor *from) { return evictor_move(run, from, NULL); }

void gm__evict_run_stop(gm__evict_run *run, gm_evictor *at) {
  if (at) evictor_move(run, at, at);
}

uint64_t gm__evict_run_evictable(gm__evict_run *run) {
  uint64_t bytes = 0;
  for (gm_evictor *each = NULL; (each = gm__evict_run_next(run, each));) {
    gm__rank_expect(GM__RANK_GATE);
    bytes = gm__add_sat(bytes, each->params.evictable ? each->params.evictable(each->params.user) : UINT64_MAX);
  }
  return bytes;
}

const char *gm__evictor_name(const gm_evictor *evictor) { return evictor->name; }

uint64_t gm__evictor_ask(const gm_evictor *evictor, uint64_t bytes) {
  gm__rank_expect(GM__RANK_GATE); /* no lock */
  return evictor->params.evict(evictor->params.user, bytes);
}

/* ---- begin and end ---- */

gm_status gm_evictor_register(gm_device *device, const gm_evictor_params *params, gm_evictor **out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_evictor_register";
  gm_evictor_params own;
  gm_status status = gm__device_check(device, op, err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  status = gm__sized_in(&own, sizeof own, params, op, "params", err);
  if (status) return status;
  if (!own.evict) return gm__bad_argument(err, op, "`params->evict` is NULL");
  gm_evictor *evictor = gm__object_new(device->ctx, GM__KIND_EVICTOR, sizeof *evictor);
  if (!evictor) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for an evictor");
  evictor->device = device;
  evictor->params = own;
  strncpy(evictor->name, own.name ? own.name : "evictor", sizeof evictor->name - 1);
  evictor->params.name = evictor->name;
  atomic_fetch_add(&device->children, 1);
  evicting_add(device);
  gm__mutex_lock(&device->evict_lock);
  evictor_link(device, evictor);
  atomic_fetch_add_explicit(&device->evictor_count, 1, memory_order_relaxed);
  *out = evictor;
  gm__mutex_unlock(&device->evict_lock);
  return GM_OK;
}

/* True: the caller ends the evictor. */
static bool evictor_retire(gm_device *device, gm_evictor *evictor) {
  gm__mutex_lock(&device->evict_lock);
  evictor->gone = true;
  atomic_fetch_sub_explicit(&device->evictor_count, 1, memory_order_relaxed);
  const bool mine = !evictor->calls || !evictor_mark_here(device);
  evictor->awaited = mine;
  while (mine && evictor->calls) gm__cond_wait(&device->evict_done, &device->evict_lock);
  if (mine) evictor_unlink(device, evictor);
  gm__mutex_unlock(&device->evict_lock);
  return mine;
}

gm_status gm_evictor_unregister(gm_evictor *evictor, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_evictor_unregister";
  if (!evictor) return GM_OK;
  if (!gm__object_is(&evictor->head, GM__KIND_EVICTOR)) return gm__bad_argument(err, op, "`evictor` is no evictor");
  gm_device *device = evictor->device;
  evictor_marks_drop_left((uintptr_t)__builtin_frame_address(0));
  if (gm__context_forked(device->ctx) || evictor_retire(device, evictor)) evictor_end(evictor);
  return GM_OK;
}
