#include "core/device/evictor.h"

#include <string.h>

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/base/thread_here.h"
#include "core/device/device.h"

/* Invariants: an evictor with calls stays in the list and alive. One that is gone is asked by nobody new. Whoever takes
 * the last call off one that is gone ends it, unless a thread waits in gm_evictor_unregister: then that thread does. */

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

static const void *evictor_thread(void) { return &gm__here; }

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

/* The run that the calling thread is in. NULL: none. REQUIRES: evict lock. */
static const gm__evict_run *evictor_run_here(const gm_device *device) {
  const gm__evict_run *run = device->evict_runs;
  while (run && run->thread != evictor_thread()) run = run->next;
  return run;
}

/* ---- asking ---- */

bool gm__evict_run_begin(gm__evict_run *run, gm_device *device) {
  *run = (gm__evict_run){.device = device, .thread = evictor_thread()};
  if (!atomic_load_explicit(&device->evictor_count, memory_order_relaxed)) return false;
  gm__mutex_lock(&device->evict_lock);
  const bool inside = evictor_run_here(device) != NULL;
  if (!inside) {
    run->next = device->evict_runs;
    device->evict_runs = run;
  }
  gm__mutex_unlock(&device->evict_lock);
  return !inside;
}

void gm__evict_run_end(gm__evict_run *run) {
  gm__mutex_lock(&run->device->evict_lock);
  gm__evict_run **at = &run->device->evict_runs;
  while (*at != run) at = &(*at)->next;
  *at = run->next;
  gm__mutex_unlock(&run->device->evict_lock);
}

bool gm__evict_run_is_of_pool(gm_device *device) {
  gm__mutex_lock(&device->evict_lock);
  const gm__evict_run *run = evictor_run_here(device);
  const bool of_pool = run && run->pool;
  gm__mutex_unlock(&device->evict_lock);
  return of_pool;
}

static bool evictor_serves(const gm_evictor *evictor, const gm__evict_run *run) {
  return !evictor->gone && (!run->pool || !evictor->params.pool || evictor->params.pool == run->pool);
}

static gm_evictor *evictor_move(gm__evict_run *run, gm_evictor *from, gm_evictor *to) {
  gm_device *device = run->device;
  gm__mutex_lock(&device->evict_lock);
  if (!to) to = from ? from->next : device->evictors;
  while (to && to != from && !evictor_serves(to, run)) to = to->next;
  if (to && to != from) to->calls++;
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
  if (!evictor) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, op, "no host memory for an evictor");
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
  const bool mine = !evictor->calls || !evictor_run_here(device);
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
  if (gm__context_forked(device->ctx) || evictor_retire(device, evictor)) evictor_end(evictor);
  return GM_OK;
}
