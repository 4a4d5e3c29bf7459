#include "backends/opencl/opencl_part.h"

/* OpenCL does not define the result when commands use a buffer and its sub-buffer at the same time, even for different
 * bytes. Sub-buffers that do not overlap are fine. So gm uses sub-buffers where the engine does. Sub-buffers and blocks
 * begin at multiples of the device's alignment: a sub-buffer never reaches into the block before it. */

gm_status gm__opencl_part_open(gm__opencl_device *device, cl_mem buffer, bool viewed, uint64_t at, uint64_t bytes,
                               gm__opencl_part *out, gm_error *err) {
  *out = (gm__opencl_part){.buffer = buffer, .offset = at};
  if (!viewed || !buffer || !bytes) return GM_OK;
  cl_int code = CL_SUCCESS;
  out->offset = at % device->info.alignment;
  const cl_buffer_region region = {(size_t)(at - out->offset), (size_t)(bytes + out->offset)};
  out->view = device->cl->clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
  if (!out->view) return gm__opencl_device_fail(device, code, false, "clCreateSubBuffer", err);
  out->buffer = out->view;
  return GM_OK;
}

void gm__opencl_part_close(const gm__opencl_device *device, const gm__opencl_part *part) {
  if (part->view) device->cl->clReleaseMemObject(part->view);
}
