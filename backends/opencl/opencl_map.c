#include "backends/opencl/opencl_map.h"

#include "backends/opencl/opencl_mem.h"
#include "backends/opencl/opencl_status.h"
#include "backends/opencl/opencl_stream.h"
#include "core/base/error.h"

/* CL_MAP_WRITE_INVALIDATE_REGION excludes the other two. */
static cl_map_flags opencl_map_flags(uint32_t mode) {
  if (mode & GM_MAP_READ) return mode & (GM_MAP_WRITE | GM_MAP_DISCARD) ? CL_MAP_READ | CL_MAP_WRITE : CL_MAP_READ;
  return mode & GM_MAP_DISCARD ? CL_MAP_WRITE_INVALIDATE_REGION : CL_MAP_WRITE;
}

gm_status gm__opencl_map(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                         uint32_t mode, void **out, gm_error *err) {
  gm__opencl_device *opened = device;
  const gm__opencl_memory *record = gm__opencl_memory_of(memory);
  cl_command_queue queue = NULL;
  gm_stream_kind kind = GM_STREAM_FIFO;
  if (mode == 0 || bytes == 0) return gm__bad_argument(err, "clEnqueueMapBuffer", "`mode` and `bytes` must not be 0");
  gm_status status = gm__opencl_stream_queue(opened, stream, &queue, &kind, err);
  if (status == GM_OK) status = gm__opencl_stream_order(opened, queue, kind, err);
  if (status != GM_OK) return status;
  cl_int code = CL_SUCCESS;
  void *pointer =
      opened->cl->clEnqueueMapBuffer(queue, record->buffer, CL_TRUE, opencl_map_flags(mode),
                                     (size_t)(record->origin + offset), (size_t)bytes, 0, NULL, NULL, &code);
  if (!pointer) return gm__opencl_device_fail(opened, code, true, "clEnqueueMapBuffer", err);
  *out = pointer;
  return GM_OK;
}

gm_status gm__opencl_unmap(void *device, void *stream, const gm_memory *memory, void *pointer, gm_error *err) {
  gm__opencl_device *opened = device;
  cl_command_queue queue = NULL;
  gm_stream_kind kind = GM_STREAM_FIFO;
  const gm_status status = gm__opencl_stream_queue(opened, stream, &queue, &kind, err);
  if (status != GM_OK) return status;
  const cl_int code =
      opened->cl->clEnqueueUnmapMemObject(queue, gm__opencl_memory_of(memory)->buffer, pointer, 0, NULL, NULL);
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
