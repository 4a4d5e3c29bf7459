#include "backends/hip/hip_point.h"

#include "backends/hip/hip_current.h"
#include "backends/hip/hip_status.h"
#include "backends/hip/hip_stream.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/native.h"
#include "core/base/poll.h"
#include "core/base/sized.h"
#include "gm/native_hip.h"

static gm__event_slot *hip_slot_take(gm__hip_device *device, bool with_event, gm_error *err) {
  gm__event_slot *slot = gm__event_slots_take(&device->events, with_event);
  if (!slot) gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "hip", "no host memory for the point's record");
  return slot;
}

static gm_backend_point hip_slot_point(gm__event_slot *slot) {
  return (gm_backend_point){.handle = (uintptr_t)slot, .value = atomic_load(&slot->use)};
}

static gm_status hip_slot_record(gm__hip_device *device, gm__event_slot *slot, hipStream_t stream, gm_error *err) {
  hipEvent_t event = slot->event;
  hipError_t code = hipSuccess;
  if (!event) {
    code = device->hip->hipEventCreateWithFlags(&event, hipEventDisableTiming);
    if (code != hipSuccess) return gm__hip_device_fail(device, code, "hipEventCreateWithFlags", err);
    if (!event) return gm__hip_nonsense(err, "hipEventCreateWithFlags", "gave no event");
    slot->event = event;
  }
  code = device->hip->hipEventRecord(event, stream);
  return code == hipSuccess ? GM_OK : gm__hip_device_fail(device, code, "hipEventRecord", err);
}

gm_status gm__hip_point_mark(gm__hip_device *device, hipStream_t stream, gm_backend_point *out, gm_error *err) {
  gm__event_slot *slot = hip_slot_take(device, true, err);
  if (!slot) return GM_ERR_OUT_OF_HOST_MEMORY;
  const gm_status status = hip_slot_record(device, slot, stream, err);
  if (status == GM_OK) {
    *out = hip_slot_point(slot);
    return GM_OK;
  }
  hipEvent_t surplus = gm__event_slots_put(&device->events, slot);
  if (surplus) device->hip->hipEventDestroy(surplus);
  return status;
}

void gm__hip_events_destroy(gm__hip_device *device) {
  for (gm__event_slot *slot = device->events.all; slot; slot = slot->next) {
    if (slot->event && !slot->lent) device->hip->hipEventDestroy(slot->event);
  }
}

/* The state of an event, asked with the device current or not. */
static gm_status hip_event_ask(gm__hip_device *device, hipEvent_t event, bool *out, gm_error *err) {
  const hipError_t code = device->hip->hipEventQuery(event);
  if (code != hipSuccess && code != hipErrorNotReady) return gm__hip_device_fail(device, code, "hipEventQuery", err);
  *out = code == hipSuccess;
  return GM_OK;
}

static gm_status hip_event_look(gm__hip_device *device, hipEvent_t event, bool *out, gm_error *err) {
  gm__hip_scope scope;
  gm_status status = gm__hip_enter(device, &scope, err);
  if (status != GM_OK) return status;
  status = hip_event_ask(device, event, out, err);
  gm__hip_leave(&scope);
  return status;
}

/* HIP counts no references on events: until the point has passed, or was given back, the engine neither destroys the
 * event nor records it again. One that has passed already is not kept. */
gm_status gm__hip_point_import(void *device, const gm_native_point *native, gm_backend_point *out, gm_error *err) {
  gm__hip_device *opened = device;
  gm_hip_point lent;
  bool done = false;
  gm_status status = gm__native_in(&lent, sizeof lent, native, GM_API_HIP, "hip", "native", err);
  if (status != GM_OK) return status;
  if (!lent.event) return gm__bad_argument(err, "hip", "`event` of the native point must not be 0");
  status = hip_event_look(opened, (hipEvent_t)lent.event, &done, err);
  if (status != GM_OK) return status;
  if (done) {
    *out = (gm_backend_point){0};
    return GM_OK;
  }
  gm__event_slot *slot = hip_slot_take(opened, false, err);
  if (!slot) return GM_ERR_OUT_OF_HOST_MEMORY;
  slot->event = (void *)lent.event;
  slot->lent = true;
  *out = hip_slot_point(slot);
  return GM_OK;
}

gm_status gm__hip_point_native(void *device, const gm_backend_point *point, gm_native_point *out, gm_error *err) {
  (void)device;
  gm_hip_point native = {.head = *out};
  const gm_status status = gm__native_check(out, sizeof native, GM_API_HIP, "hip", "out", err);
  if (status != GM_OK) return status;
  const gm__event_slot *slot = gm__event_slot_find(point->handle, point->value);
  native.event = slot ? (uintptr_t)slot->event : 0;
  gm__sized_out(out, &native, sizeof native);
  return GM_OK;
}

gm_status gm__hip_point_record(void *device, void *stream, gm_backend_point *out, gm_error *err) {
  gm__hip_job job;
  gm_status status = gm__hip_begin(device, stream, &job, err);
  if (status != GM_OK) return status;
  status = gm__hip_point_mark(device, job.stream, out, err);
  gm__hip_leave(&job.scope);
  return status;
}

gm_status gm__hip_point_done(void *device, const gm_backend_point *point, bool *out, gm_error *err) {
  const gm__event_slot *slot = gm__event_slot_find(point->handle, point->value);
  if (slot) return hip_event_look(device, slot->event, out, err);
  *out = true;
  return GM_OK;
}

/* HIP has no wait with a limit: the state is asked for. */
static gm_status hip_event_poll(gm__hip_device *device, hipEvent_t event, uint64_t deadline, gm_error *err) {
  for (gm__poll poll = gm__poll_until(deadline);;) {
    bool done = false;
    const gm_status status = hip_event_ask(device, event, &done, err);
    if (status != GM_OK || done) return status;
    if (gm__poll_again(&poll)) continue;
    return gm__fail(err, GM_ERR_TIMEOUT, 0, "hip", "the point has not passed in the time given");
  }
}

static gm_status hip_event_wait(gm__hip_device *device, hipEvent_t event, uint64_t timeout_ns, gm_error *err) {
  if (timeout_ns != GM__NEVER) return hip_event_poll(device, event, gm__deadline_after(timeout_ns), err);
  const hipError_t code = device->hip->hipEventSynchronize(event);
  return code == hipSuccess ? GM_OK : gm__hip_device_fail(device, code, "hipEventSynchronize", err);
}

gm_status gm__hip_point_wait(void *device, const gm_backend_point *point, uint64_t timeout_ns, gm_error *err) {
  gm__hip_scope scope;
  const gm__event_slot *slot = gm__event_slot_find(point->handle, point->value);
  if (!slot) return GM_OK;
  gm_status status = gm__hip_enter(device, &scope, err);
  if (status != GM_OK) return status;
  status = hip_event_wait(device, slot->event, timeout_ns, err);
  gm__hip_leave(&scope);
  return status;
}

gm_status gm__hip_point_wait_on(void *device, void *stream, const gm_backend_point *point, gm_error *err) {
  gm__hip_device *opened = device;
  gm__hip_job job;
  const gm__event_slot *slot = gm__event_slot_find(point->handle, point->value);
  if (!slot) return GM_OK;
  gm_status status = gm__hip_begin(opened, stream, &job, err);
  if (status != GM_OK) return status;
  const hipError_t code = opened->hip->hipStreamWaitEvent(job.stream, slot->event, 0);
  if (code != hipSuccess) status = gm__hip_device_fail(opened, code, "hipStreamWaitEvent", err);
  gm__hip_leave(&job.scope);
  return status;
}

gm_status gm__hip_point_copy(void *device, const gm_backend_point *point, gm_backend_point *out, gm_error *err) {
  gm__hip_device *opened = device;
  gm__event_slot *slot = gm__event_slot_find(point->handle, point->value);
  bool passed = !slot;
  gm__event_slot *copy = slot ? gm__event_slots_copy(&opened->events, slot, point->value, &passed) : NULL;
  if (!copy && !passed)
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "hip", "no host memory for the point's record");
  *out = copy ? hip_slot_point(copy) : (gm_backend_point){0};
  return GM_OK;
}

void gm__hip_point_release(void *device, const gm_backend_point *point, gm_close_mode mode) {
  gm__hip_device *opened = device;
  gm__event_slot *slot = (gm__event_slot *)(uintptr_t)point->handle;
  gm__hip_scope scope;
  if (!slot || mode == GM_CLOSE_ABANDON || !gm__event_slot_retire(slot, point->value)) return;
  hipEvent_t surplus = gm__event_slots_put(&opened->events, slot);
  if (!surplus || gm__hip_enter(opened, &scope, NULL) != GM_OK) return;
  opened->hip->hipEventDestroy(surplus);
  gm__hip_leave(&scope);
}
