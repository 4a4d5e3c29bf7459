#include "backends/opencl/opencl_map.h"

#include "backends/opencl/opencl_mem.h"
#include "backends/opencl/opencl_point.h"
#include "backends/opencl/opencl_status.h"
#include "backends/opencl/opencl_stream.h"
#include "core/base/error.h"

/* CL_MAP_WRITE_INVALIDATE_REGION excludes the other two. */
static cl_map_flags opencl_map_flags(uint32_t mode) {
  if (mode & GM_MAP_READ) return mode & (GM_MAP_WRITE | GM_MAP_DISCARD) ? CL_MAP_READ | CL_MAP_WRITE : CL_MAP_READ;
  return mode & GM_MAP_DISCARD ? CL_MAP_WRITE_INVALIDATE_REGION : CL_MAP_WRITE;
}

/* USM has no mapping: the host's turn comes when the stream's work has ended. */
static gm_status opencl_map_unified(gm__opencl_device *device, cl_command_queue queue, const gm__opencl_memory *record,
                                    uint64_t offset, void **out, gm_error *err) {
  if (record->kind == GM__OPENCL_USM_DEVICE) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "opencl", "the host does not see unified memory of the device's own");
  }
  const gm_status status = gm__opencl_point_mark(device, queue, NULL, err);
  if (status == GM_OK) *out = (void *)(record->pointer + (uintptr_t)offset);
  return status;
}

static cl_int opencl_map_command(const gm__opencl_device *device, cl_command_queue queue,
                                 const gm__opencl_memory *record, uint64_t offset, uint64_t bytes, cl_map_flags flags,
                                 void **out) {
  cl_int code = CL_SUCCESS;
  if (record->pointer) {
    *out = (void *)(record->pointer + (uintptr_t)offset);
    return device->cl->clEnqueueSVMMap(queue, CL_TRUE, flags, *out, (size_t)bytes, 0, NULL, NULL);
  }
  *out = device->cl->clEnqueueMapBuffer(queue, record->buffer, CL_TRUE, flags, (size_t)(record->origin + offset),
                                        (size_t)bytes, 0, NULL, NULL, &code);
  return code;
}

gm_status gm__opencl_map(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                         uint32_t mode, void **out, gm_error *err) {
  gm__opencl_device *opened = device;
  const gm__opencl_memory *record = gm__opencl_memory_of(memory);
  cl_command_queue queue = NULL;
  gm_stream_kind kind = GM_STREAM_FIFO;
  void *pointer = NULL;
  if (mode == 0 || bytes == 0) return gm__bad_argument(err, "clEnqueueMapBuffer", "`mode` and `bytes` must not be 0");
  gm_status status = gm__opencl_stream_queue(opened, stream, &queue, &kind, err);
  if (status == GM_OK) status = gm__opencl_stream_order(opened, queue, kind, err);
  if (status != GM_OK) return status;
  if (gm__opencl_kind_is_usm(record->kind)) return opencl_map_unified(opened, queue, record, offset, out, err);
  const cl_int code = opencl_map_command(opened, queue, record, offset, bytes, opencl_map_flags(mode), &pointer);
  if (code != CL_SUCCESS || !pointer) return gm__opencl_device_fail(opened, code, true, "clEnqueueMapBuffer", err);
  *out = pointer;
  return GM_OK;
}

/* On gm's own queue nobody else would wait for the end of it before the memory is freed, and clSVMFree waits for
 * nothing. That the wait may fail changes nothing: the memory is unmapped. */
static cl_int opencl_unmap_virtual(gm__opencl_device *device, cl_command_queue queue, bool own, void *pointer) {
  cl_event event = NULL;
  const cl_int code = device->cl->clEnqueueSVMUnmap(queue, pointer, 0, NULL, own ? &event : NULL);
  if (code == CL_SUCCESS && event) gm__opencl_point_end(device, queue, event, NULL, NULL);
  return code;
}

gm_status gm__opencl_unmap(void *device, void *stream, const gm_memory *memory, void *pointer, gm_error *err) {
  gm__opencl_device *opened = device;
  const gm__opencl_memory *record = gm__opencl_memory_of(memory);
  cl_command_queue queue = NULL;
  gm_stream_kind kind = GM_STREAM_FIFO;
  cl_int code = CL_SUCCESS;
  const gm_status status = gm__opencl_stream_queue(opened, stream, &queue, &kind, err);
  if (status != GM_OK) return status;
  if (gm__opencl_kind_is_svm(record->kind)) {
    code = opencl_unmap_virtual(opened, queue, !stream, pointer);
  } else if (record->buffer) {
    code = opened->cl->clEnqueueUnmapMemObject(queue, record->buffer, pointer, 0, NULL, NULL);
  }
  if (code != CL_SUCCESS) return gm__opencl_device_fail(opened, code, false, "clEnqueueUnmapMemObject", err);
  return gm__opencl_stream_order(opened, queue, kind, err);
}

gm_status gm__opencl_map_sync(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, gm_error *err) {
  (void)device;
  (void)memory;
  (void)offset;
  (void)bytes;
  (void)err;
  return GM_OK;
}
