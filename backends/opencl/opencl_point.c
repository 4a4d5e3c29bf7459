#include "backends/opencl/opencl_point.h"

#include "backends/opencl/opencl_entries.h"
#include "backends/opencl/opencl_queue.h"
#include "backends/shared/native.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/poll.h"
#include "core/base/sized.h"
#include "gm/native_opencl.h"

/* Invariants: gm flushes a queue when it makes a point of it. A command that waits for an event of an unflushed queue
 * may wait for ever, and the waiter may not know or touch that queue. A point's event belongs to the device's context,
 * so every queue of the context can wait for it. */

static cl_event opencl_point_event(const gm_backend_point *point) { return (cl_event)(uintptr_t)point->handle; }

/* *out is CL_COMPLETE (0), or above 0 before the end. A command that ended with an error code gives a failure. */
static gm_status opencl_event_state(gm__opencl_device *device, cl_event event, cl_int *out, gm_error *err) {
  cl_int state = 0;
  const cl_int code = device->cl->clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
  if (code != CL_SUCCESS) return gm__opencl_device_fail(device, code, true, "clGetEventInfo", err);
  if (state < 0) return gm__opencl_device_fail(device, state, true, "command", err);
  *out = state;
  return GM_OK;
}

/* clWaitForEvents only reports that a command failed. The event has the reason. */
static gm_status opencl_event_wait(gm__opencl_device *device, cl_event event, gm_error *err) {
  cl_int state = 0;
  const cl_int code = device->cl->clWaitForEvents(1, &event);
  if (code == CL_SUCCESS || code == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) {
    const gm_status status = opencl_event_state(device, event, &state, err);
    if (status != GM_OK || code == CL_SUCCESS) return status;
  }
  return gm__opencl_device_fail(device, code, true, "clWaitForEvents", err);
}

gm_status gm__opencl_point_end(gm__opencl_device *device, cl_command_queue queue, cl_event event, gm_backend_point *out,
                               gm_error *err) {
  const cl_int code = device->cl->clFlush(queue);
  gm_status status = code == CL_SUCCESS ? GM_OK : gm__opencl_device_fail(device, code, false, "clFlush", err);
  if (status == GM_OK && out) {
    *out = (gm_backend_point){.handle = (uintptr_t)event};
    return GM_OK;
  }
  const gm_status waited = opencl_event_wait(device, event, status == GM_OK ? err : NULL);
  if (waited != GM_OK) device->cl->clFinish(queue);
  device->cl->clReleaseEvent(event);
  return status == GM_OK ? waited : status;
}

gm_status gm__opencl_point_mark(gm__opencl_device *device, cl_command_queue queue, gm_backend_point *out,
                                gm_error *err) {
  cl_event event = NULL;
  const cl_int code = device->cl->clEnqueueMarkerWithWaitList(queue, 0, NULL, &event);
  if (code == CL_SUCCESS) return gm__opencl_point_end(device, queue, event, out, err);
  device->cl->clFinish(queue);
  return gm__opencl_device_fail(device, code, false, "clEnqueueMarkerWithWaitList", err);
}

gm_status gm__opencl_point_after(gm__opencl_device *device, cl_command_queue queue, gm_status status,
                                 gm_backend_point *out, gm_error *err) {
  if (status == GM_OK) return gm__opencl_point_mark(device, queue, out, err);
  device->cl->clFinish(queue);
  return status;
}

/* Flush the queue of an engine's event: perhaps nobody has done so. A user event has no queue. */
static gm_status opencl_point_flush_origin(gm__opencl_device *device, cl_event event, gm_error *err) {
  cl_command_queue queue = NULL;
  cl_int code = device->cl->clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof queue, &queue, NULL);
  if (code != CL_SUCCESS) return gm__opencl_device_fail(device, code, false, "clGetEventInfo", err);
  if (queue) code = device->cl->clFlush(queue);
  return gm__opencl_check(device, code, "clFlush", err);
}

static gm_status opencl_point_check_context(gm__opencl_device *device, cl_event event, gm_error *err) {
  cl_context context = NULL;
  const cl_int code = device->cl->clGetEventInfo(event, CL_EVENT_CONTEXT, sizeof context, &context, NULL);
  if (code != CL_SUCCESS) return gm__opencl_device_fail(device, code, false, "clGetEventInfo", err);
  if (context == device->context) return GM_OK;
  return gm__bad_argument(err, "opencl", "the event belongs to another context than the device");
}

gm_status gm__opencl_point_import(void *device, const gm_native_point *native, gm_backend_point *out, gm_error *err) {
  gm__opencl_device *opened = device;
  gm_opencl_point lent;
  gm_status status = gm__native_in(&lent, sizeof lent, native, GM_API_OPENCL, "opencl", "native", err);
  if (status != GM_OK) return status;
  if (!lent.event) return gm__bad_argument(err, "opencl", "`event` of the native point must not be 0");
  cl_event event = (cl_event)lent.event;
  status = opencl_point_check_context(opened, event, err);
  if (status == GM_OK) status = opencl_point_flush_origin(opened, event, err);
  if (status != GM_OK) return status;
  const cl_int code = opened->cl->clRetainEvent(event);
  if (code != CL_SUCCESS) return gm__opencl_device_fail(opened, code, false, "clRetainEvent", err);
  *out = (gm_backend_point){.handle = (uintptr_t)event};
  return GM_OK;
}

gm_status gm__opencl_point_native(void *device, const gm_backend_point *point, gm_native_point *out, gm_error *err) {
  (void)device;
  gm_opencl_point native = {.head = *out};
  const gm_status status = gm__native_check(out, sizeof native, GM_API_OPENCL, "opencl", "out", err);
  if (status != GM_OK) return status;
  native.event = (uintptr_t)opencl_point_event(point);
  gm__sized_out(out, &native, sizeof native);
  return GM_OK;
}

gm_status gm__opencl_point_record(void *device, void *stream, gm_backend_point *out, gm_error *err) {
  gm__opencl_queue queue;
  const gm_status status = gm__opencl_queue_of(device, stream, &queue, err);
  return status == GM_OK ? gm__opencl_point_mark(device, queue.handle, out, err) : status;
}

gm_status gm__opencl_point_done(void *device, const gm_backend_point *point, bool *out, gm_error *err) {
  cl_int state = CL_COMPLETE;
  if (point->handle) {
    const gm_status status = opencl_event_state(device, opencl_point_event(point), &state, err);
    if (status != GM_OK) return status;
  }
  *out = state == CL_COMPLETE;
  return GM_OK;
}

/* OpenCL has no wait with a time limit, so gm polls the state. */
static gm_status opencl_event_wait_until(gm__opencl_device *device, cl_event event, uint64_t deadline, gm_error *err) {
  for (gm__poll poll = gm__poll_until(deadline);;) {
    cl_int state = 0;
    const gm_status status = opencl_event_state(device, event, &state, err);
    if (status != GM_OK || state == CL_COMPLETE) return status;
    if (gm__poll_again(&poll)) continue;
    return gm__fail(err, GM_ERR_TIMEOUT, "opencl", "the point has not passed in the time given");
  }
}

gm_status gm__opencl_point_wait(void *device, const gm_backend_point *point, uint64_t timeout_ns, gm_error *err) {
  if (!point->handle) return GM_OK;
  cl_event event = opencl_point_event(point);
  if (timeout_ns == GM__NEVER) return opencl_event_wait(device, event, err);
  return opencl_event_wait_until(device, event, gm__deadline_after(timeout_ns), err);
}

/* gm enqueues a barrier and not a wait list for each later command, because the engine enqueues commands too. */
/* On PoCL's out-of-order queues a barrier with a list forgets the barrier before it, if nothing is in between. So a
 * second wait would end the first one. The plain barrier behind it waits for both. */
gm_status gm__opencl_point_wait_on(void *device, void *stream, const gm_backend_point *point, gm_error *err) {
  gm__opencl_device *opened = device;
  gm__opencl_queue queue;
  if (!point->handle) return GM_OK;
  cl_event event = opencl_point_event(point);
  gm_status status = gm__opencl_queue_of(opened, stream, &queue, err);
  if (status == GM_OK) status = opencl_point_check_context(opened, event, err);
  if (status != GM_OK) return status;
  const cl_int code = opened->cl->clEnqueueBarrierWithWaitList(queue.handle, 1, &event, NULL);
  status = gm__opencl_check(opened, code, "clEnqueueBarrierWithWaitList", err);
  return status ? status : gm__opencl_queue_order(opened, &queue, err);
}

gm_status gm__opencl_point_copy(void *device, const gm_backend_point *point, gm_backend_point *out, gm_error *err) {
  gm__opencl_device *opened = device;
  cl_event event = opencl_point_event(point);
  const cl_int code = event ? opened->cl->clRetainEvent(event) : CL_SUCCESS;
  if (code != CL_SUCCESS) return gm__opencl_device_fail(opened, code, false, "clRetainEvent", err);
  *out = *point;
  return GM_OK;
}

void gm__opencl_point_release(void *device, const gm_backend_point *point, gm_close_mode mode) {
  gm__opencl_device *opened = device;
  if (point->handle && mode == GM_CLOSE_NORMAL) opened->cl->clReleaseEvent(opencl_point_event(point));
}
