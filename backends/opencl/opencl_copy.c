#include <string.h>

#include "backends/opencl/opencl_entries.h"
#include "backends/opencl/opencl_kernels.h"
#include "backends/opencl/opencl_move.h"
#include "backends/opencl/opencl_part.h"
#include "backends/opencl/opencl_point.h"
#include "backends/opencl/opencl_queue.h"
#include "core/base/error.h"

static gm_status opencl_copy_one(gm__opencl_device *device, void *stream, const gm__opencl_place *dst,
                                 const gm__opencl_place *src, uint64_t bytes, gm_backend_point *out, gm_error *err) {
  gm__opencl_queue queue;
  cl_event event = NULL;
  gm_status status = gm__opencl_queue_of(device, stream, &queue, err);
  if (status != GM_OK) return status;
  if (bytes == 0) return gm__opencl_point_mark(device, queue.handle, out, err);
  status = gm__opencl_move(device, queue.handle, dst, src, bytes, &event, err);
  return status == GM_OK ? gm__opencl_point_end(device, queue.handle, event, out, err) : status;
}

gm_status gm__opencl_copy_to_device(void *device, void *stream, const gm_memory *dst, uint64_t offset, const void *src,
                                    uint64_t bytes, gm_backend_point *out, gm_error *err) {
  const gm__opencl_place to = gm__opencl_place_of(dst, offset), from = gm__opencl_place_of_host(src);
  return opencl_copy_one(device, stream, &to, &from, bytes, out, err);
}

gm_status gm__opencl_copy_to_host(void *device, void *stream, const gm_memory *src, uint64_t offset, void *dst,
                                  uint64_t bytes, gm_backend_point *out, gm_error *err) {
  const gm__opencl_place to = gm__opencl_place_of_host(dst), from = gm__opencl_place_of(src, offset);
  return opencl_copy_one(device, stream, &to, &from, bytes, out, err);
}

gm_status gm__opencl_copy(void *device, void *stream, const gm_copy_item *item, gm_backend_point *out, gm_error *err) {
  const gm__opencl_place to = gm__opencl_place_of(item->dst, item->dst_offset);
  const gm__opencl_place from = gm__opencl_place_of(item->src, item->src_offset);
  return opencl_copy_one(device, stream, &to, &from, item->bytes, out, err);
}

gm_status gm__opencl_copy_many(void *device, void *stream, const gm_copy_item *items, uint32_t count,
                               gm_backend_point *out, gm_error *err) {
  gm__opencl_device *opened = device;
  gm__opencl_queue queue;
  gm_status status = gm__opencl_queue_of(opened, stream, &queue, err);
  if (status != GM_OK) return status;
  cl_event event = NULL;
  if (gm__opencl_kernels_copy(opened, queue.handle, items, count, &event)) {
    return gm__opencl_point_end(opened, queue.handle, event, out, err);
  }
  for (uint32_t i = 0; i < count && status == GM_OK; i++) {
    const gm__opencl_place to = gm__opencl_place_of(items[i].dst, items[i].dst_offset);
    const gm__opencl_place from = gm__opencl_place_of(items[i].src, items[i].src_offset);
    if (items[i].bytes) status = gm__opencl_move(opened, queue.handle, &to, &from, items[i].bytes, NULL, err);
  }
  return gm__opencl_point_after(opened, queue.handle, status, out, err);
}

gm_status gm__opencl_expand(void *device, void *stream, const gm_memory *dst, uint64_t dst_offset, const gm_memory *src,
                            uint64_t src_offset, uint64_t count, gm_dtype from, gm_backend_point *out, gm_error *err) {
  const gm__opencl_expansion what = {
      gm__opencl_memory_of(dst), gm__opencl_memory_of(src), dst_offset, src_offset, count, from == GM_DTYPE_F16};
  gm__opencl_queue queue;
  cl_event event = NULL;
  const gm_status status = gm__opencl_queue_of(device, stream, &queue, err);
  if (status != GM_OK) return status;
  if (count == 0) return gm__opencl_point_mark(device, queue.handle, out, err);
  if (gm__opencl_kernels_expand(device, queue.handle, &what, &event)) {
    return gm__opencl_point_end(device, queue.handle, event, out, err);
  }
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_backend_ops.expand", "no kernel of the driver expands these numbers");
}

/* A fill command takes only offsets (or addresses) and sizes that are multiples of the pattern. So gm spreads the
 * pattern to 16 bytes. It fills a ragged beginning and end with pieces of 1, 2, 4 and 8 bytes, at most four on either
 * side. */
enum { OPENCL_FILL = 16 };

typedef struct opencl_fill {
  uint8_t ring[2 * OPENCL_FILL]; /* the pattern twice, so that each rotation is a slice of it */
  uint64_t start, at, end;
  cl_mem buffer;
} opencl_fill;

static uint64_t opencl_fill_piece(const opencl_fill *fill, size_t *pattern) {
  const uint64_t left = fill->end - fill->at;
  *pattern = OPENCL_FILL;
  while (fill->at % *pattern || left < *pattern) *pattern /= 2;
  return *pattern == OPENCL_FILL ? left - left % OPENCL_FILL : *pattern;
}

/* Enqueue one command. fill->at is an offset in fill->buffer, or an address where the record has one. */
static cl_int opencl_fill_command(const gm__opencl_device *device, cl_command_queue queue,
                                  const gm__opencl_memory *record, const opencl_fill *fill, size_t pattern,
                                  size_t bytes) {
  const uint8_t *from = fill->ring + (fill->at - fill->start) % OPENCL_FILL;
  void *to = (void *)(uintptr_t)fill->at;
  if (gm__opencl_kind_is_usm(record->kind)) {
    return device->kinds.usm.clEnqueueMemFillINTEL(queue, to, from, pattern, bytes, 0, NULL, NULL);
  }
  if (record->pointer) return device->cl->clEnqueueSVMMemFill(queue, to, from, pattern, bytes, 0, NULL, NULL);
  return device->cl->clEnqueueFillBuffer(queue, fill->buffer, from, pattern, (size_t)fill->at, bytes, 0, NULL, NULL);
}

static gm_status opencl_fill_enqueue(gm__opencl_device *device, cl_command_queue queue, const gm__opencl_memory *record,
                                     opencl_fill *fill, gm_error *err) {
  while (fill->at < fill->end) {
    size_t pattern = 0;
    const uint64_t bytes = opencl_fill_piece(fill, &pattern);
    const cl_int code = opencl_fill_command(device, queue, record, fill, pattern, (size_t)bytes);
    if (code != CL_SUCCESS) {
      device->cl->clFinish(queue);
      return gm__opencl_device_fail(device, code, false, "clEnqueueFillBuffer", err);
    }
    fill->at += bytes;
  }
  return GM_OK;
}

/* Enqueue the whole fill, in the memory's part or at its address. */
static gm_status opencl_fill_range(gm__opencl_device *device, cl_command_queue queue, const gm__opencl_memory *record,
                                   uint64_t offset, uint64_t bytes, opencl_fill *fill, gm_error *err) {
  gm__opencl_part part = {.offset = record->pointer + offset};
  if (!record->pointer) {
    const gm_status status = gm__opencl_part_open(device, record->buffer, atomic_load(&record->viewed),
                                                  record->origin + offset, bytes, &part, err);
    if (status != GM_OK) return status;
  }
  fill->buffer = part.buffer;
  fill->start = fill->at = part.offset;
  fill->end = part.offset + bytes;
  const gm_status status = opencl_fill_enqueue(device, queue, record, fill, err);
  gm__opencl_part_close(device, &part);
  return status;
}

gm_status gm__opencl_fill(void *device, void *stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                          const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err) {
  gm__opencl_queue queue;
  opencl_fill fill = {.start = 0};
  if (pattern_bytes == 0 || pattern_bytes > OPENCL_FILL || (pattern_bytes & (pattern_bytes - 1))) {
    return gm__bad_argument(err, "clEnqueueFillBuffer", "`pattern_bytes` must be 1, 2, 4, 8 or 16, is %u",
                            (unsigned)pattern_bytes);
  }
  for (size_t i = 0; i < sizeof fill.ring; i += pattern_bytes) memcpy(fill.ring + i, pattern, pattern_bytes);
  gm_status status = gm__opencl_queue_of(device, stream, &queue, err);
  if (status == GM_OK) {
    status = opencl_fill_range(device, queue.handle, gm__opencl_memory_of(dst), offset, bytes, &fill, err);
  }
  return status == GM_OK ? gm__opencl_point_mark(device, queue.handle, out, err) : status;
}
