#include "backends/cuda/cuda_point.h"

#include <time.h>

#include "backends/cuda/cuda_context.h"
#include "backends/cuda/cuda_status.h"
#include "backends/cuda/cuda_stream.h"
#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "gm/native_cuda.h"

/* Invariants: a record lives as long as its device, so a point of any age can be looked at; `uses` of a record that a
 * point holds equals the point's value, and goes up by one when the point is released, once, whoever releases it; only
 * who moved it up touches `event` until the record is spare again. */

struct gm__cuda_event {
  CUevent event; /* NULL: none yet, or the engine's was given back */
  bool lent;     /* the engine's: never destroyed */
  _Atomic uint64_t uses;
  gm__cuda_event *next;       /* of all */
  gm__cuda_event *next_spare; /* of the spare ones */
};

enum { CUDA_SPARE_EVENTS = 64 }; /* more are given back to the driver */

static gm__cuda_event *cuda_event_pop(gm__cuda_device *device, gm__cuda_event **list) {
  gm__cuda_event *record = *list;
  if (record) *list = record->next_spare;
  if (record && record->event) device->spare_count--;
  return record;
}

/* A record that no point uses, with an event where `with_event` asks for one and the cache has it. */
static gm__cuda_event *cuda_event_take(gm__cuda_device *device, bool with_event, gm_error *err) {
  gm__mutex_lock(&device->lock);
  gm__cuda_event *record = with_event ? cuda_event_pop(device, &device->spare) : NULL;
  if (!record) record = cuda_event_pop(device, &device->blank);
  gm__mutex_unlock(&device->lock);
  if (record) return record;
  record = gm__alloc(device->services, sizeof *record);
  if (!record) {
    gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "cuda", "no host memory for the point's record");
    return NULL;
  }
  atomic_init(&record->uses, 1);
  gm__mutex_lock(&device->lock);
  record->next = device->events;
  device->events = record;
  gm__mutex_unlock(&device->lock);
  return record;
}

/* Back into the cache; the event that is one too many comes out, to be destroyed without the lock. */
static CUevent cuda_event_put(gm__cuda_device *device, gm__cuda_event *record) {
  CUevent surplus = NULL;
  gm__mutex_lock(&device->lock);
  if (record->lent || device->spare_count >= CUDA_SPARE_EVENTS) {
    if (!record->lent) surplus = record->event;
    record->event = NULL;
    record->lent = false;
  }
  gm__cuda_event **list = record->event ? &device->spare : &device->blank;
  if (record->event) device->spare_count++;
  record->next_spare = *list;
  *list = record;
  gm__mutex_unlock(&device->lock);
  return surplus;
}

static gm_backend_point cuda_event_point(gm__cuda_event *record) {
  return (gm_backend_point){.handle = (uintptr_t)record, .value = atomic_load(&record->uses)};
}

/* The record of a point that still has its event; NULL: passed, or given back. */
static gm__cuda_event *cuda_point_event(const gm_backend_point *point) {
  gm__cuda_event *record = (gm__cuda_event *)(uintptr_t)point->handle;
  return record && atomic_load(&record->uses) == point->value ? record : NULL;
}

static gm_status cuda_event_record(gm__cuda_device *device, gm__cuda_event *record, CUstream stream, gm_error *err) {
  CUresult code = CUDA_SUCCESS;
  if (!record->event) {
    code = device->cu->cuEventCreate(&record->event, CU_EVENT_DISABLE_TIMING);
    if (code != CUDA_SUCCESS) {
      record->event = NULL;
      return gm__cuda_device_fail(device, code, "cuEventCreate", err);
    }
    if (!record->event) return gm__cuda_nonsense(err, "cuEventCreate", "gave no event");
  }
  code = device->cu->cuEventRecord(record->event, stream);
  return code == CUDA_SUCCESS ? GM_OK : gm__cuda_device_fail(device, code, "cuEventRecord", err);
}

gm_status gm__cuda_point_mark(gm__cuda_device *device, CUstream stream, gm_backend_point *out, gm_error *err) {
  gm__cuda_event *record = cuda_event_take(device, true, err);
  if (!record) return GM_ERR_OUT_OF_HOST_MEMORY;
  const gm_status status = cuda_event_record(device, record, stream, err);
  if (status == GM_OK) {
    *out = cuda_event_point(record);
    return GM_OK;
  }
  CUevent surplus = cuda_event_put(device, record);
  if (surplus) device->cu->cuEventDestroy_v2(surplus);
  return status;
}

void gm__cuda_events_destroy(gm__cuda_device *device) {
  for (gm__cuda_event *record = device->events; record; record = record->next) {
    if (record->event && !record->lent) device->cu->cuEventDestroy_v2(record->event);
  }
}

void gm__cuda_events_discard(gm__cuda_device *device) {
  while (device->events) {
    gm__cuda_event *record = device->events;
    device->events = record->next;
    gm__release(device->services, record, sizeof *record);
  }
}

/* CUDA counts no references on events: until the point has passed, or was given back, the engine neither destroys the
 * event nor records it again. One that has passed already is not kept. */
gm_status gm__cuda_point_import(void *device, const gm_native_point *native, gm_backend_point *out, gm_error *err) {
  gm__cuda_device *opened = device;
  const gm_cuda_point *lent = (const gm_cuda_point *)native;
  gm__cuda_scope scope;
  gm_status status = gm__cuda_check_head(native->struct_size, native->api, sizeof *lent, "native", err);
  if (status != GM_OK) return status;
  if (!lent->event) return gm__bad_argument(err, "cuda", "`event` of the native point must not be 0");
  status = gm__cuda_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  const CUresult code = opened->cu->cuEventQuery((CUevent)lent->event);
  gm__cuda_leave(&scope);
  if (code == CUDA_SUCCESS) {
    *out = (gm_backend_point){0};
    return GM_OK;
  }
  if (code != CUDA_ERROR_NOT_READY) return gm__cuda_device_fail(opened, code, "cuEventQuery", err);
  gm__cuda_event *record = cuda_event_take(opened, false, err);
  if (!record) return GM_ERR_OUT_OF_HOST_MEMORY;
  record->event = (CUevent)lent->event;
  record->lent = true;
  *out = cuda_event_point(record);
  return GM_OK;
}

gm_status gm__cuda_point_native(void *device, const gm_backend_point *point, gm_native_point *out, gm_error *err) {
  (void)device;
  gm_cuda_point *native = (gm_cuda_point *)out;
  const gm_status status = gm__cuda_check_head(out->struct_size, out->api, sizeof *native, "out", err);
  if (status != GM_OK) return status;
  const gm__cuda_event *record = cuda_point_event(point);
  native->event = record ? (uintptr_t)record->event : 0;
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
  const gm__cuda_event *record = cuda_point_event(point);
  if (!record) {
    *out = true;
    return GM_OK;
  }
  const gm_status status = gm__cuda_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  const CUresult code = opened->cu->cuEventQuery(record->event);
  gm__cuda_leave(&scope);
  return cuda_point_answer(opened, code, out, err);
}

/* CUDA has no wait with a limit: the state is asked for, with pauses from 20 µs up to 1 ms. */
static gm_status cuda_event_poll(gm__cuda_device *device, CUevent event, uint64_t deadline, gm_error *err) {
  const uint64_t shortest = 20000, longest = 1000000;
  for (uint64_t pause = shortest;; pause = pause * 2 < longest ? pause * 2 : longest) {
    bool done = false;
    const gm_status status = cuda_point_answer(device, device->cu->cuEventQuery(event), &done, err);
    if (status != GM_OK || done) return status;
    const uint64_t left = gm__deadline_left(deadline);
    if (left == 0) return gm__fail(err, GM_ERR_TIMEOUT, 0, "cuda", "the point has not passed in the time given");
    const struct timespec time = {0, (long)(left < pause ? left : pause)};
    nanosleep(&time, NULL);
  }
}

static gm_status cuda_event_wait(gm__cuda_device *device, CUevent event, uint64_t timeout_ns, gm_error *err) {
  if (timeout_ns != GM__NEVER) return cuda_event_poll(device, event, gm__deadline_after(timeout_ns), err);
  const CUresult code = device->cu->cuEventSynchronize(event);
  return code == CUDA_SUCCESS ? GM_OK : gm__cuda_device_fail(device, code, "cuEventSynchronize", err);
}

gm_status gm__cuda_point_wait(void *device, const gm_backend_point *point, uint64_t timeout_ns, gm_error *err) {
  gm__cuda_scope scope;
  const gm__cuda_event *record = cuda_point_event(point);
  if (!record) return GM_OK;
  gm_status status = gm__cuda_enter(device, &scope, err);
  if (status != GM_OK) return status;
  status = cuda_event_wait(device, record->event, timeout_ns, err);
  gm__cuda_leave(&scope);
  return status;
}

gm_status gm__cuda_point_wait_on(void *device, void *stream, const gm_backend_point *point, gm_error *err) {
  gm__cuda_device *opened = device;
  gm__cuda_job job;
  const gm__cuda_event *record = cuda_point_event(point);
  if (!record) return GM_OK;
  const gm_status status = gm__cuda_begin(opened, stream, &job, err);
  if (status != GM_OK) return status;
  const CUresult code = opened->cu->cuStreamWaitEvent(job.stream, record->event, 0);
  gm__cuda_leave(&job.scope);
  return code == CUDA_SUCCESS ? GM_OK : gm__cuda_device_fail(opened, code, "cuStreamWaitEvent", err);
}

void gm__cuda_point_release(void *device, const gm_backend_point *point, gm_close_mode mode) {
  gm__cuda_device *opened = device;
  gm__cuda_event *record = (gm__cuda_event *)(uintptr_t)point->handle;
  uint64_t uses = point->value;
  if (!record || mode == GM_CLOSE_ABANDON) return;
  if (!atomic_compare_exchange_strong(&record->uses, &uses, uses + 1)) return;
  CUevent surplus = cuda_event_put(opened, record);
  gm__cuda_scope scope;
  if (!surplus || gm__cuda_enter(opened, &scope, NULL) != GM_OK) return;
  opened->cu->cuEventDestroy_v2(surplus);
  gm__cuda_leave(&scope);
}
