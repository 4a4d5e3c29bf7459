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

/* ---- two sides ---- */

static const gm__opencl_range *sides_low(const gm__opencl_range *a, const gm__opencl_range *b) {
  return a->at < b->at ? a : b;
}

static bool sides_are_near(const gm__opencl_device *device, const gm__opencl_range *dst, const gm__opencl_range *src) {
  const gm__opencl_range *low = sides_low(dst, src), *high = low == dst ? src : dst;
  return dst->viewed && dst->buffer && dst->buffer == src->buffer &&
         high->at - high->at % device->info.alignment < low->at + low->bytes;
}

/* The shared part ends where the last range ends. */
static gm_status sides_open_near(gm__opencl_device *device, const gm__opencl_range *dst, const gm__opencl_range *src,
                                 gm__opencl_sides *out, gm_error *err) {
  const uint64_t low = sides_low(dst, src)->at, dst_end = dst->at + dst->bytes, src_end = src->at + src->bytes;
  const uint64_t bytes = (dst_end > src_end ? dst_end : src_end) - low;
  const gm_status status = gm__opencl_part_open(device, dst->buffer, true, low, bytes, &out->to, err);
  if (status != GM_OK) return status;
  out->from = (gm__opencl_part){.buffer = out->to.buffer, .offset = out->to.offset + (src->at - low)};
  out->to.offset += dst->at - low;
  return GM_OK;
}

gm_status gm__opencl_sides_open(gm__opencl_device *device, const gm__opencl_range *dst, const gm__opencl_range *src,
                                gm__opencl_sides *out, gm_error *err) {
  if (sides_are_near(device, dst, src)) return sides_open_near(device, dst, src, out, err);
  gm_status status = gm__opencl_part_open(device, dst->buffer, dst->viewed, dst->at, dst->bytes, &out->to, err);
  if (status != GM_OK) return status;
  status = gm__opencl_part_open(device, src->buffer, src->viewed, src->at, src->bytes, &out->from, err);
  if (status != GM_OK) gm__opencl_part_close(device, &out->to);
  return status;
}

void gm__opencl_sides_close(const gm__opencl_device *device, const gm__opencl_sides *sides) {
  gm__opencl_part_close(device, &sides->to);
  gm__opencl_part_close(device, &sides->from);
}
