#include "backends/cuda/cuda_point.h"

#include "backends/cuda/cuda_context.h"
#include "backends/cuda/cuda_status.h"
#include "backends/cuda/cuda_stream.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/native.h"
#include "core/base/poll.h"
#include "core/base/sized.h"
#include "gm/native_cuda.h"

static gm__event_slot *cuda_slot_take(gm__cuda_device *device, bool with_event, gm_error *err) {
  gm__event_slot *slot = gm__event_slots_take(&device->events, with_event);
  if (!slot) gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "cuda", "no host memory for the point's record");
  return slot;
}

static gm_backend_point cuda_slot_point(gm__event_slot *slot) {
  return (gm_backend_point){.handle = (uintptr_t)slot, .value = atomic_load(&slot->use)};
}

static gm_status cuda_slot_record(gm__cuda_device *device, gm__event_slot *slot, CUstream stream, gm_error *err) {
  CUevent event = slot->event;
  CUresult code = CUDA_SUCCESS;
  if (!event) {
    code = device->cu->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    if (code != CUDA_SUCCESS) return gm__cuda_device_fail(device, code, "cuEventCreate", err);
    if (!event) return gm__cuda_nonsense(err, "cuEventCreate", "gave no event");
    slot->event = event;
  }
  code = device->cu->cuEventRecord(event, stream);
  return code == CUDA_SUCCESS ? GM_OK : gm__cuda_device_fail(device, code, "cuEventRecord", err);
}

gm_status gm__cuda_point_mark(gm__cuda_device *device, CUstream stream, gm_backend_point *out, gm_error *err) {
  gm__event_slot *slot = cuda_slot_take(device, true, err);
  if (!slot) return GM_ERR_OUT_OF_HOST_MEMORY;
  const gm_status status = cuda_slot_record(device, slot, stream, err);
  if (status == GM_OK) {
    *out = cuda_slot_point(slot);
    return GM_OK;
  }
  CUevent surplus = gm__event_slots_put(&device->events, slot);
  if (surplus) device->cu->cuEventDestroy_v2(surplus);
  return status;
}

void gm__cuda_events_destroy(gm__cuda_device *device) {
  for (gm__event_slot *slot = device->events.all; slot; slot = slot->next) {
    if (slot->event && !slot->lent) device->cu->cuEventDestroy_v2(slot->event);
  }
}

/* CUDA counts no references on events: until the point has passed, or was given back, the engine neither destroys the
 * event nor records it again. One that has passed already is not kept. */
gm_status gm__cuda_point_import(void *device, const gm_native_point *native, gm_backend_point *out, gm_error *err) {
  gm__cuda_device *opened = device;
  gm_cuda_point lent;
  gm__cuda_scope scope;
  gm_status status = gm__native_in(&lent, sizeof lent, native, GM_API_CUDA, "cuda", "native", err);
  if (status != GM_OK) return status;
  if (!lent.event) return gm__bad_argument(err, "cuda", "`event` of the native point must not be 0");
  status = gm__cuda_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  const CUresult code = opened->cu->cuEventQuery((CUevent)lent.event);
  gm__cuda_leave(&scope);
  if (code == CUDA_SUCCESS) {
    *out = (gm_backend_point){0};
    return GM_OK;
  }
  if (code != CUDA_ERROR_NOT_READY) return gm__cuda_device_fail(opened, code, "cuEventQuery", err);
  gm__event_slot *slot = cuda_slot_take(opened, false, err);
  if (!slot) return GM_ERR_OUT_OF_HOST_MEMORY;
  slot->event = (void *)lent.event;
  slot->lent = true;
  *out = cuda_slot_point(slot);
  return GM_OK;
}

gm_status gm__cuda_point_native(void *device, const gm_backend_point *point, gm_native_point *out, gm_error *err) {
  (void)device;
  gm_cuda_point native = {.head = *out};
  const gm_status status = gm__native_check(out, sizeof native, GM_API_CUDA, "cuda", "out", err);
  if (status != GM_OK) return status;
  const gm__event_slot *slot = gm__event_slot_find(point->handle, point->value);
  native.event = slot ? (uintptr_t)slot->event : 0;
  gm__sized_out(out, &native, sizeof native);
  return GM_OK;
}

gm_status gm__cuda_point_record(void *device, void *stream, gm_backend_point *out, gm_error *err) {
  gm__cuda_job job;
  gm_status status = gm__cuda_begin(device, stream, &job, err);
  if (status != GM_OK) return status;
  status = gm__cuda_point_mark(device, job.stream, out, err);
  gm__cuda_leave(&job.scope);
  return status;
}

static gm_status cuda_point_answer(gm__cuda_device *device, CUresult code, bool *out, gm_error *err) {
  if (code != CUDA_SUCCESS && code != CUDA_ERROR_NOT_READY) {
    return gm__cuda_device_fail(device, code, "cuEventQuery", err);
  }
  *out = code == CUDA_SUCCESS;
  return GM_OK;
}

gm_status gm__cuda_point_done(void *device, const gm_backend_point *point, bool *out, gm_error *err) {
  gm__cuda_device *opened = device;
  gm__cuda_scope scope;
  const gm__event_slot *slot = gm__event_slot_find(point->handle, point->value);
  if (!slot) {
    *out = true;
    return GM_OK;
  }
  const gm_status status = gm__cuda_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  const CUresult code = opened->cu->cuEventQuery(slot->event);
  gm__cuda_leave(&scope);
  return cuda_point_answer(opened, code, out, err);
}

/* CUDA has no wait with a limit: the state is asked for. */
static gm_status cuda_event_poll(gm__cuda_device *device, CUevent event, uint64_t deadline, gm_error *err) {
  for (gm__poll poll = gm__poll_until(deadline);;) {
    bool done = false;
    const gm_status status = cuda_point_answer(device, device->cu->cuEventQuery(event), &done, err);
    if (status != GM_OK || done) return status;
    if (gm__poll_again(&poll)) continue;
    return gm__fail(err, GM_ERR_TIMEOUT, 0, "cuda", "the point has not passed in the time given");
  }
}

static gm_status cuda_event_wait(gm__cuda_device *device, CUevent event, uint64_t timeout_ns, gm_error *err) {
  if (timeout_ns != GM__NEVER) return cuda_event_poll(device, event, gm__deadline_after(timeout_ns), err);
  const CUresult code = device->cu->cuEventSynchronize(event);
  return code == CUDA_SUCCESS ? GM_OK : gm__cuda_device_fail(device, code, "cuEventSynchronize", err);
}

gm_status gm__cuda_point_wait(void *device, const gm_backend_point *point, uint64_t timeout_ns, gm_error *err) {
  gm__cuda_scope scope;
  const gm__event_slot *slot = gm__event_slot_find(point->handle, point->value);
  if (!slot) return GM_OK;
  gm_status status = gm__cuda_enter(device, &scope, err);
  if (status != GM_OK) return status;
  status = cuda_event_wait(device, slot->event, timeout_ns, err);
  gm__cuda_leave(&scope);
  return status;
}

gm_status gm__cuda_point_wait_on(void *device, void *stream, const gm_backend_point *point, gm_error *err) {
  gm__cuda_device *opened = device;
  gm__cuda_job job;
  const gm__event_slot *slot = gm__event_slot_find(point->handle, point->value);
  if (!slot) return GM_OK;
  const gm_status status = gm__cuda_begin(opened, stream, &job, err);
  if (status != GM_OK) return status;
  const CUresult code = opened->cu->cuStreamWaitEvent(job.stream, slot->event, 0);
  gm__cuda_leave(&job.scope);
  return code == CUDA_SUCCESS ? GM_OK : gm__cuda_device_fail(opened, code, "cuStreamWaitEvent", err);
}

gm_status gm__cuda_point_copy(void *device, const gm_backend_point *point, gm_backend_point *out, gm_error *err) {
  gm__cuda_device *opened = device;
  gm__event_slot *slot = gm__event_slot_find(point->handle, point->value);
  bool passed = !slot;
  gm__event_slot *copy = slot ? gm__event_slots_copy(&opened->events, slot, point->value, &passed) : NULL;
  if (!copy && !passed)
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "cuda", "no host memory for the point's record");
  *out = copy ? cuda_slot_point(copy) : (gm_backend_point){0};
  return GM_OK;
}

void gm__cuda_point_release(void *device, const gm_backend_point *point, gm_close_mode mode) {
  gm__cuda_device *opened = device;
  gm__event_slot *slot = (gm__event_slot *)(uintptr_t)point->handle;
  if (!slot || mode == GM_CLOSE_ABANDON || !gm__event_slot_retire(slot, point->value)) return;
  CUevent surplus = gm__event_slots_put(&opened->events, slot);
  gm__cuda_scope scope;
  if (!surplus || gm__cuda_enter(opened, &scope, NULL) != GM_OK) return;
  opened->cu->cuEventDestroy_v2(surplus);
  gm__cuda_leave(&scope);
}
