#include "backends/opencl/opencl_entries.h"
#include "backends/opencl/opencl_point.h"
#include "backends/opencl/opencl_queue.h"
#include "backends/shared/native.h"
#include "core/base/alloc.h"
#include "core/base/error.h"
#include "gm/native_opencl.h"

static gm__opencl_stream *opencl_stream_make(gm__opencl_device *device, gm_error *err) {
  gm__opencl_stream *stream = gm__alloc(device->services, sizeof *stream);
  if (!stream) gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "opencl", "no host memory for the stream's record");
  return stream;
}

gm_status gm__opencl_stream_create(void *device, void **out_stream, gm_stream_kind *out_kind, gm_error *err) {
  gm__opencl_device *opened = device;
  if (!opened->allow_queue) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "clCreateCommandQueue",
                    "the engine forbids queues of gm's own (allow_queue)");
  }
  gm__opencl_stream *stream = opencl_stream_make(opened, err);
  if (!stream) return GM_ERR_OUT_OF_HOST_MEMORY;
  cl_int code = CL_SUCCESS;
  stream->queue.handle = opened->cl->clCreateCommandQueue(opened->context, opened->id, 0, &code);
  if (!stream->queue.handle) {
    gm__release(opened->services, stream, sizeof *stream);
    return gm__opencl_device_fail(opened, code, false, "clCreateCommandQueue", err);
  }
  stream->queue.kind = GM_STREAM_FIFO;
  *out_stream = stream;
  *out_kind = stream->queue.kind;
  return GM_OK;
}

typedef struct opencl_queue_facts {
  cl_context context;
  cl_device_id device;
  cl_command_queue_properties properties;
} opencl_queue_facts;

static gm_status opencl_queue_ask(gm__opencl_device *device, cl_command_queue queue, opencl_queue_facts *out,
                                  gm_error *err) {
  const gm__opencl_syms *cl = device->cl;
  cl_int code = cl->clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof out->context, &out->context, NULL);
  if (code == CL_SUCCESS) {
    code = cl->clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof out->device, &out->device, NULL);
  }
  if (code == CL_SUCCESS) {
    code = cl->clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof out->properties, &out->properties, NULL);
  }
  return gm__opencl_check(device, code, "clGetCommandQueueInfo", err);
}

static gm_status opencl_queue_check(const gm__opencl_device *device, const opencl_queue_facts *facts, gm_error *err) {
  if (facts->context != device->context) {
    return gm__bad_argument(err, "opencl", "`queue` belongs to another context than the device");
  }
  if (!gm__opencl_device_within(device->cl, facts->device, device->id)) {
    return gm__bad_argument(err, "opencl", "`queue` belongs to another device of the context");
  }
  if (facts->properties & CL_QUEUE_ON_DEVICE) {
    return gm__bad_argument(err, "opencl", "`queue` is a queue on the device, which the host cannot use");
  }
  return GM_OK;
}

gm_status gm__opencl_stream_adopt(void *device, const gm_native_stream *native, void **out_stream,
                                  gm_stream_kind *out_kind, gm_error *err) {
  gm__opencl_device *opened = device;
  gm_opencl_queue lent;
  opencl_queue_facts facts = {0};
  gm_status status = gm__native_in(&lent, sizeof lent, native, GM_API_OPENCL, "opencl", "native", err);
  if (status != GM_OK) return status;
  if (!lent.queue) return gm__bad_argument(err, "opencl", "`queue` of the native stream must not be 0");
  status = opencl_queue_ask(opened, (cl_command_queue)lent.queue, &facts, err);
  if (status == GM_OK) status = opencl_queue_check(opened, &facts, err);
  if (status != GM_OK) return status;
  gm__opencl_stream *stream = opencl_stream_make(opened, err);
  if (!stream) return GM_ERR_OUT_OF_HOST_MEMORY;
  const cl_int code = opened->cl->clRetainCommandQueue((cl_command_queue)lent.queue);
  if (code != CL_SUCCESS) {
    gm__release(opened->services, stream, sizeof *stream);
    return gm__opencl_device_fail(opened, code, false, "clRetainCommandQueue", err);
  }
  stream->queue.handle = (cl_command_queue)lent.queue;
  stream->adopted = true;
  const bool unordered = (facts.properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0;
  stream->queue.kind = unordered ? GM_STREAM_UNORDERED : GM_STREAM_FIFO;
  *out_stream = stream;
  *out_kind = stream->queue.kind;
  return GM_OK;
}

/* gm holds a reference on the queue, so no other queue has its handle. */
gm_status gm__opencl_stream_same(void *device, void *stream, const gm_native_stream *native, bool *out, gm_error *err) {
  const gm__opencl_stream *adopted = stream;
  gm_opencl_queue lent;
  (void)device;
  const gm_status status = gm__native_in(&lent, sizeof lent, native, GM_API_OPENCL, "opencl", "native", err);
  if (status == GM_OK) *out = (cl_command_queue)lent.queue == adopted->queue.handle;
  return status;
}

/* The handle is the name: gm holds a reference on each queue that it knows. */
gm_status gm__opencl_stream_name(void *device, const gm_native_stream *native, gm_stream_name *out, gm_error *err) {
  gm_opencl_queue lent;
  (void)device;
  const gm_status status = gm__native_in(&lent, sizeof lent, native, GM_API_OPENCL, "opencl", "native", err);
  if (status != GM_OK) return status;
  if (!lent.queue) return gm__bad_argument(err, "opencl", "`queue` of the native stream must not be 0");
  *out = (gm_stream_name){{lent.queue, 0}};
  return GM_OK;
}

void gm__opencl_stream_close(void *device, void *stream, gm_close_mode mode) {
  gm__opencl_device *opened = device;
  gm__opencl_stream *closing = stream;
  if (!closing) return;
  if (mode == GM_CLOSE_NORMAL) {
    if (!closing->adopted) gm__opencl_point_mark(opened, closing->queue.handle, NULL, NULL);
    opened->cl->clReleaseCommandQueue(closing->queue.handle);
  }
  gm__release(opened->services, closing, sizeof *closing);
}

gm_status gm__opencl_stream_flush(void *device, void *stream, gm_error *err) {
  gm__opencl_device *opened = device;
  const cl_int code = opened->cl->clFlush(((gm__opencl_stream *)stream)->queue.handle);
  return gm__opencl_check(opened, code, "clFlush", err);
}

/* The clFinish of rusticl 22.3 does not wait for flushed work. A wait for an event waits on every driver. */
gm_status gm__opencl_stream_sync(void *device, void *stream, gm_error *err) {
  gm__opencl_device *opened = device;
  cl_command_queue queue = ((gm__opencl_stream *)stream)->queue.handle;
  const cl_int code = opened->cl->clFinish(queue);
  if (code != CL_SUCCESS) return gm__opencl_device_fail(opened, code, true, "clFinish", err);
  return gm__opencl_point_mark(opened, queue, NULL, err);
}

gm_status gm__opencl_stream_barrier(void *device, void *stream, gm_error *err) {
  return gm__opencl_queue_order(device, &((gm__opencl_stream *)stream)->queue, err);
}
