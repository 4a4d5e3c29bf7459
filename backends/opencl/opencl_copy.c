#include "backends/opencl/opencl_copy.h"

#include <string.h>

#include "backends/opencl/opencl_mem.h"
#include "backends/opencl/opencl_point.h"
#include "backends/opencl/opencl_status.h"
#include "backends/opencl/opencl_stream.h"
#include "core/base/error.h"

/* Invariant: no command is "blocking" in OpenCL's sense, since a blocking write may return when the source was read and
 * the bytes have not arrived; each is followed by its event. */

gm_status gm__opencl_copy_to_device(void *device, void *stream, const gm_memory *dst, uint64_t offset, const void *src,
                                    uint64_t bytes, gm_backend_point *out, gm_error *err) {
  gm__opencl_device *opened = device;
  const gm__opencl_memory *record = gm__opencl_memory_of(dst);
  cl_command_queue queue = NULL;
  gm_stream_kind kind = GM_STREAM_FIFO;
  cl_event event = NULL;
  const gm_status status = gm__opencl_stream_queue(opened, stream, &queue, &kind, err);
  if (status != GM_OK) return status;
  if (bytes == 0) return gm__opencl_point_mark(opened, queue, out, err);
  const cl_int code = opened->cl->clEnqueueWriteBuffer(
      queue, record->buffer, CL_FALSE, (size_t)(record->origin + offset), (size_t)bytes, src, 0, NULL, &event);
  if (code != CL_SUCCESS) return gm__opencl_device_fail(opened, code, false, "clEnqueueWriteBuffer", err);
  return gm__opencl_point_end(opened, queue, event, out, err);
}

gm_status gm__opencl_copy_to_host(void *device, void *stream, const gm_memory *src, uint64_t offset, void *dst,
                                  uint64_t bytes, gm_backend_point *out, gm_error *err) {
  gm__opencl_device *opened = device;
  const gm__opencl_memory *record = gm__opencl_memory_of(src);
  cl_command_queue queue = NULL;
  gm_stream_kind kind = GM_STREAM_FIFO;
  cl_event event = NULL;
  const gm_status status = gm__opencl_stream_queue(opened, stream, &queue, &kind, err);
  if (status != GM_OK) return status;
  if (bytes == 0) return gm__opencl_point_mark(opened, queue, out, err);
  const cl_int code = opened->cl->clEnqueueReadBuffer(
      queue, record->buffer, CL_FALSE, (size_t)(record->origin + offset), (size_t)bytes, dst, 0, NULL, &event);
  if (code != CL_SUCCESS) return gm__opencl_device_fail(opened, code, false, "clEnqueueReadBuffer", err);
  return gm__opencl_point_end(opened, queue, event, out, err);
}

static gm_status opencl_copy_enqueue(gm__opencl_device *device, cl_command_queue queue, const gm_copy_item *item,
                                     cl_event *event, gm_error *err) {
  const gm__opencl_memory *src = gm__opencl_memory_of(item->src);
  const gm__opencl_memory *dst = gm__opencl_memory_of(item->dst);
  if (item->bytes == 0) return GM_OK;
  const cl_int code =
      device->cl->clEnqueueCopyBuffer(queue, src->buffer, dst->buffer, (size_t)(src->origin + item->src_offset),
                                      (size_t)(dst->origin + item->dst_offset), (size_t)item->bytes, 0, NULL, event);
  return code == CL_SUCCESS ? GM_OK : gm__opencl_device_fail(device, code, false, "clEnqueueCopyBuffer", err);
}

gm_status gm__opencl_copy(void *device, void *stream, const gm_copy_item *item, gm_backend_point *out, gm_error *err) {
  cl_command_queue queue = NULL;
  gm_stream_kind kind = GM_STREAM_FIFO;
  cl_event event = NULL;
  gm_status status = gm__opencl_stream_queue(device, stream, &queue, &kind, err);
  if (status == GM_OK) status = opencl_copy_enqueue(device, queue, item, &event, err);
  if (status != GM_OK) return status;
  if (!event) return gm__opencl_point_mark(device, queue, out, err);
  return gm__opencl_point_end(device, queue, event, out, err);
}

gm_status gm__opencl_copy_many(void *device, void *stream, const gm_copy_item *items, uint32_t count,
                               gm_backend_point *out, gm_error *err) {
  gm__opencl_device *opened = device;
  cl_command_queue queue = NULL;
  gm_stream_kind kind = GM_STREAM_FIFO;
  gm_status status = gm__opencl_stream_queue(opened, stream, &queue, &kind, err);
  if (status != GM_OK) return status;
  for (uint32_t i = 0; i < count && status == GM_OK; i++) {
    status = opencl_copy_enqueue(opened, queue, &items[i], NULL, err);
  }
  if (status == GM_OK) return gm__opencl_point_mark(opened, queue, out, err);
  opened->cl->clFinish(queue); /* what was enqueued before the failure must not outlive the call */
  return status;
}

/* A fill command wants its offset and size in multiples of the pattern, of the whole buffer. So the pattern is spread
 * to 16 bytes, and what is left at a ragged beginning and end is filled by pieces of 1, 2, 4 and 8 bytes, each where it
 * is aligned: at most four on either side. */
enum { OPENCL_FILL = 16 };

typedef struct opencl_fill {
  uint8_t ring[2 * OPENCL_FILL]; /* the pattern from the first byte on, twice: any rotation is a slice of it */
  uint64_t start, at, end;
} opencl_fill;

static uint64_t opencl_fill_piece(const opencl_fill *fill, size_t *pattern) {
  const uint64_t left = fill->end - fill->at;
  *pattern = OPENCL_FILL;
  while (fill->at % *pattern || left < *pattern) *pattern /= 2;
  return *pattern == OPENCL_FILL ? left - left % OPENCL_FILL : *pattern;
}

static gm_status opencl_fill_enqueue(gm__opencl_device *device, cl_command_queue queue, cl_mem buffer,
                                     opencl_fill *fill, gm_error *err) {
  while (fill->at < fill->end) {
    size_t pattern = 0;
    const uint64_t bytes = opencl_fill_piece(fill, &pattern);
    const uint8_t *from = fill->ring + (fill->at - fill->start) % OPENCL_FILL;
    const cl_int code =
        device->cl->clEnqueueFillBuffer(queue, buffer, from, pattern, (size_t)fill->at, (size_t)bytes, 0, NULL, NULL);
    if (code != CL_SUCCESS) {
      device->cl->clFinish(queue);
      return gm__opencl_device_fail(device, code, false, "clEnqueueFillBuffer", err);
    }
    fill->at += bytes;
  }
  return GM_OK;
}

gm_status gm__opencl_fill(void *device, void *stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                          const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err) {
  const gm__opencl_memory *record = gm__opencl_memory_of(dst);
  cl_command_queue queue = NULL;
  gm_stream_kind kind = GM_STREAM_FIFO;
  opencl_fill fill = {.start = record->origin + offset};
  if (pattern_bytes == 0 || pattern_bytes > OPENCL_FILL || (pattern_bytes & (pattern_bytes - 1))) {
    return gm__bad_argument(err, "clEnqueueFillBuffer", "`pattern_bytes` must be 1, 2, 4, 8 or 16, is %u",
                            (unsigned)pattern_bytes);
  }
  fill.at = fill.start;
  fill.end = fill.start + bytes;
  for (size_t i = 0; i < sizeof fill.ring; i += pattern_bytes) memcpy(fill.ring + i, pattern, pattern_bytes);
  gm_status status = gm__opencl_stream_queue(device, stream, &queue, &kind, err);
  if (status == GM_OK) status = opencl_fill_enqueue(device, queue, record->buffer, &fill, err);
  return status == GM_OK ? gm__opencl_point_mark(device, queue, out, err) : status;
}
