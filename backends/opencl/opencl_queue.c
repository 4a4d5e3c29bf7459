#include "backends/opencl/opencl_queue.h"

#include "core/base/error.h"

static gm_status queue_make(gm__opencl_device *device, cl_command_queue *out, gm_error *err) {
  if (!device->allow_queue) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "clCreateCommandQueue",
                    "the engine forbids a queue of gm's own (allow_queue); name an adopted stream");
  }
  cl_int code = CL_SUCCESS;
  *out = device->cl->clCreateCommandQueue(device->context, device->id, 0, &code);
  return *out ? GM_OK : gm__opencl_device_fail(device, code, false, "clCreateCommandQueue", err);
}

/* Two threads may make a queue at the same time. The second thread releases its own. */
static gm_status queue_own(gm__opencl_device *device, cl_command_queue *out, gm_error *err) {
  cl_command_queue made = NULL, queue = atomic_load(&device->own_queue);
  if (!queue) {
    const gm_status status = queue_make(device, &made, err);
    if (status != GM_OK) return status;
    if (atomic_compare_exchange_strong(&device->own_queue, &queue, made)) {
      queue = made;
    } else {
      device->cl->clReleaseCommandQueue(made);
    }
  }
  *out = queue;
  return GM_OK;
}

gm_status gm__opencl_queue_of(gm__opencl_device *device, void *stream, gm__opencl_queue *out, gm_error *err) {
  *out = stream ? ((gm__opencl_stream *)stream)->queue : (gm__opencl_queue){.kind = GM_STREAM_FIFO};
  return stream ? GM_OK : queue_own(device, &out->handle, err);
}

gm_status gm__opencl_queue_order(gm__opencl_device *device, const gm__opencl_queue *queue, gm_error *err) {
  if (queue->kind != GM_STREAM_UNORDERED) return GM_OK;
  const cl_int code = device->cl->clEnqueueBarrierWithWaitList(queue->handle, 0, NULL, NULL);
  return gm__opencl_check(device, code, "clEnqueueBarrierWithWaitList", err);
}
