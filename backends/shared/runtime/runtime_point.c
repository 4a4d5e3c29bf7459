/* Points: an event and the number of its use. The entries of the seam, group 13 but the barrier, point_import,
 * point_native and point_copy. */
#include "backends/shared/native.h"
#include "backends/shared/runtime/runtime_entries.h"
#include "backends/shared/runtime/runtime_event.h"
#include "backends/shared/runtime/runtime_native.h"
#include "backends/shared/runtime/runtime_stream.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/poll.h"
#include "core/base/sized.h"

static gm_status point_look(gm__runtime_device *device, void *event, bool *out, gm_error *err) {
  gm__runtime_scope scope;
  gm_status status = gm__runtime_enter(device, &scope, err);
  if (status != GM_OK) return status;
  status = gm__runtime_event_ask(device, event, out, err);
  gm__runtime_leave(device, &scope);
  return status;
}

/* The driver counts no references on events. Until the point has passed, or was given back, the engine neither destroys
 * the event nor records it again. An event that has passed already is not kept. */
gm_status gm__runtime_point_import(void *device, const gm_native_point *native, gm_backend_point *out, gm_error *err) {
  gm__runtime_device *opened = device;
  const gm__runtime *api = opened->api;
  gm__runtime_native_point lent;
  bool done = false;
  gm_status status = gm__native_in(&lent, sizeof lent, native, api->api, api->name, "native", err);
  if (status != GM_OK) return status;
  if (!lent.event) return gm__bad_argument(err, api->name, "`event` of the native point must not be 0");
  status = point_look(opened, (void *)lent.event, &done, err);
  if (status != GM_OK) return status;
  if (done) {
    *out = (gm_backend_point){0};
    return GM_OK;
  }
  gm__event_slot *slot = gm__runtime_event_slot(opened, false, err);
  if (!slot) return GM_ERR_OUT_OF_HOST_MEMORY;
  slot->event = (void *)lent.event;
  slot->lent = true;
  *out = gm__runtime_event_point(slot);
  return GM_OK;
}

gm_status gm__runtime_point_native(void *device, const gm_backend_point *point, gm_native_point *out, gm_error *err) {
  const gm__runtime *api = ((const gm__runtime_device *)device)->api;
  gm__runtime_native_point native = {.head = *out};
  const gm_status status = gm__native_check(out, sizeof native, api->api, api->name, "out", err);
  if (status != GM_OK) return status;
  const gm__event_slot *slot = gm__event_slot_find(point->handle, point->value);
  native.event = slot ? (uintptr_t)slot->event : 0;
  gm__sized_out(out, &native, sizeof native);
  return GM_OK;
}

gm_status gm__runtime_point_record(void *device, void *stream, gm_backend_point *out, gm_error *err) {
  gm__runtime_job job;
  gm_status status = gm__runtime_begin(device, stream, &job, err);
  if (status != GM_OK) return status;
  status = gm__runtime_event_mark(device, job.stream, out, err);
  gm__runtime_leave(device, &job.scope);
  return status;
}

gm_status gm__runtime_point_done(void *device, const gm_backend_point *point, bool *out, gm_error *err) {
  const gm__event_slot *slot = gm__event_slot_find(point->handle, point->value);
  if (slot) return point_look(device, slot->event, out, err);
  *out = true;
  return GM_OK;
}

/* The driver has no wait with a limit: it is asked again and again. */
static gm_status point_poll(gm__runtime_device *device, void *event, uint64_t deadline, gm_error *err) {
  for (gm__poll poll = gm__poll_until(deadline);;) {
    bool done = false;
    const gm_status status = gm__runtime_event_ask(device, event, &done, err);
    if (status != GM_OK || done) return status;
    if (gm__poll_again(&poll)) continue;
    return gm__fail(err, GM_ERR_TIMEOUT, device->api->name, "the point has not passed in the time given");
  }
}

static gm_status point_wait(gm__runtime_device *device, void *event, uint64_t timeout_ns, gm_error *err) {
  const gm__runtime_on *sync = &device->api->event_sync;
  if (timeout_ns != GM__NEVER) return point_poll(device, event, gm__deadline_after(timeout_ns), err);
  return gm__runtime_answer(device, sync->call(device, event), sync->op, err);
}

gm_status gm__runtime_point_wait(void *device, const gm_backend_point *point, uint64_t timeout_ns, gm_error *err) {
  gm__runtime_scope scope;
  const gm__event_slot *slot = gm__event_slot_find(point->handle, point->value);
  if (!slot) return GM_OK;
  gm_status status = gm__runtime_enter(device, &scope, err);
  if (status != GM_OK) return status;
  status = point_wait(device, slot->event, timeout_ns, err);
  gm__runtime_leave(device, &scope);
  return status;
}

gm_status gm__runtime_point_wait_on(void *device, void *stream, const gm_backend_point *point, gm_error *err) {
  gm__runtime_device *opened = device;
  const gm__runtime_join *wait = &opened->api->stream_wait_event;
  gm__runtime_job job;
  const gm__event_slot *slot = gm__event_slot_find(point->handle, point->value);
  if (!slot) return GM_OK;
  const gm_status status = gm__runtime_begin(opened, stream, &job, err);
  if (status != GM_OK) return status;
  const int code = wait->call(opened, job.stream, slot->event);
  gm__runtime_leave(opened, &job.scope);
  return gm__runtime_answer(opened, code, wait->op, err);
}

gm_status gm__runtime_point_copy(void *device, const gm_backend_point *point, gm_backend_point *out, gm_error *err) {
  gm__runtime_device *opened = device;
  gm__event_slot *slot = gm__event_slot_find(point->handle, point->value);
  bool passed = !slot;
  gm__event_slot *copy = slot ? gm__event_slots_copy(&opened->events, slot, point->value, &passed) : NULL;
  if (!copy && !passed) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, opened->api->name, "no host memory for the point's record");
  }
  *out = copy ? gm__runtime_event_point(copy) : (gm_backend_point){0};
  return GM_OK;
}

void gm__runtime_point_release(void *device, const gm_backend_point *point, gm_close_mode mode) {
  gm__runtime_device *opened = device;
  gm__event_slot *slot = (gm__event_slot *)(uintptr_t)point->handle;
  gm__runtime_scope scope;
  if (!slot || mode == GM_CLOSE_ABANDON || !gm__event_slot_retire(slot, point->value)) return;
  void *surplus = gm__event_slots_put(&opened->events, slot);
  if (!surplus || gm__runtime_enter(opened, &scope, NULL) != GM_OK) return;
  opened->api->event_destroy.call(opened, surplus);
  gm__runtime_leave(opened, &scope);
}
