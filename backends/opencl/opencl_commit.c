#include "backends/opencl/opencl_entries.h"
#include "backends/opencl/opencl_move.h"
#include "backends/opencl/opencl_part.h"
#include "backends/opencl/opencl_point.h"
#include "backends/opencl/opencl_pointer.h"
#include "backends/opencl/opencl_queue.h"

/* A commit makes the driver take the memory that it has only promised. The contents must stay, so the device writes
 * each page's first byte with its own value. One rectangle copy gathers the bytes of many pages into a small buffer,
 * and a second one puts them back. A row is one byte, the pitch is a page. clEnqueueMigrateMemObjects is only a hint:
 * it does nothing on PoCL, which takes pages when they are touched. No other stream may write the range meanwhile. gm
 * assumes pages of 4096 bytes: no system has smaller ones, and a larger page is only touched more often. */

enum { OPENCL_PAGE = 4096, OPENCL_PAGES_AT_ONCE = 16384 }; /* 64 MiB and a buffer of 16 KiB at a time */

typedef struct opencl_touch {
  gm__opencl_queue queue;
  cl_mem buffer;
  cl_mem scratch;
} opencl_touch;

static gm_status opencl_touch_pages(gm__opencl_device *device, const opencl_touch *touch, uint64_t at, uint64_t pages,
                                    gm_error *err) {
  const size_t place[3] = {(size_t)at, 0, 0}, zero[3] = {0, 0, 0}, region[3] = {1, (size_t)pages, 1};
  const gm__opencl_syms *cl = device->cl;
  cl_int code = cl->clEnqueueCopyBufferRect(touch->queue.handle, touch->buffer, touch->scratch, place, zero, region,
                                            OPENCL_PAGE, 0, 1, 0, 0, NULL, NULL);
  if (code != CL_SUCCESS) return gm__opencl_device_fail(device, code, false, "clEnqueueCopyBufferRect", err);
  const gm_status status = gm__opencl_queue_order(device, &touch->queue, err);
  if (status != GM_OK) return status;
  code = cl->clEnqueueCopyBufferRect(touch->queue.handle, touch->scratch, touch->buffer, zero, place, region, 1, 0,
                                     OPENCL_PAGE, 0, 0, NULL, NULL);
  if (code != CL_SUCCESS) return gm__opencl_device_fail(device, code, false, "clEnqueueCopyBufferRect", err);
  return gm__opencl_queue_order(device, &touch->queue, err);
}

/* Touch [at, end): its first byte, then one byte for each page's distance, then its last byte, which may be in one more
 * page. */
static gm_status opencl_touch_range(gm__opencl_device *device, const opencl_touch *touch, uint64_t at, uint64_t end,
                                    gm_error *err) {
  const uint64_t last = end - 1;
  gm_status status = gm__opencl_queue_order(device, &touch->queue, err);
  while (at < end && status == GM_OK) {
    uint64_t pages = (last - at) / OPENCL_PAGE + 1;
    if (pages > OPENCL_PAGES_AT_ONCE) pages = OPENCL_PAGES_AT_ONCE;
    status = opencl_touch_pages(device, touch, at, pages, err);
    at += pages * OPENCL_PAGE;
  }
  return status == GM_OK ? opencl_touch_pages(device, touch, last, 1, err) : status;
}

static gm_status opencl_commit_buffer(gm__opencl_device *device, opencl_touch *touch, uint64_t start, uint64_t bytes,
                                      gm_error *err) {
  cl_int code = CL_SUCCESS;
  touch->scratch = device->cl->clCreateBuffer(device->context, CL_MEM_READ_WRITE, OPENCL_PAGES_AT_ONCE, NULL, &code);
  if (!touch->scratch) return gm__opencl_device_fail(device, code, false, "clCreateBuffer", err);
  gm_status status = opencl_touch_range(device, touch, start, start + bytes, err);
  status = gm__opencl_point_after(device, touch->queue.handle, status, NULL, err);
  device->cl->clReleaseMemObject(touch->scratch);
  return status;
}

/* PoCL 3.1 crashes when it copies a box from or to a sub-buffer: there the commands name the whole buffer. */
static gm_status opencl_commit_part(gm__opencl_device *device, opencl_touch *touch, const gm__opencl_memory *record,
                                    uint64_t offset, uint64_t bytes, gm_error *err) {
  gm__opencl_part part;
  const bool viewed = atomic_load(&record->viewed) && !device->crashes_on_box;
  gm_status status = gm__opencl_part_open(device, record->buffer, viewed, record->origin + offset, bytes, &part, err);
  if (status != GM_OK) return status;
  touch->buffer = part.buffer;
  status = opencl_commit_buffer(device, touch, part.offset, bytes, err);
  gm__opencl_part_close(device, &part);
  return status;
}

/* USM has no boxes, so whole pieces are copied out and back. */
enum { OPENCL_PIECE = 4 << 20 };

static gm_status opencl_touch_pieces(gm__opencl_device *device, const opencl_touch *touch, const gm_memory *memory,
                                     void *scratch, uint64_t at, uint64_t end, gm_error *err) {
  const gm__opencl_place aside = gm__opencl_place_of_host(scratch);
  gm_status status = gm__opencl_queue_order(device, &touch->queue, err);
  for (; at < end && status == GM_OK; at += OPENCL_PIECE) {
    const gm__opencl_place piece = gm__opencl_place_of(memory, at);
    const uint64_t bytes = end - at < OPENCL_PIECE ? end - at : OPENCL_PIECE;
    status = gm__opencl_move(device, touch->queue.handle, &aside, &piece, bytes, NULL, err);
    if (status == GM_OK) status = gm__opencl_queue_order(device, &touch->queue, err);
    if (status == GM_OK) status = gm__opencl_move(device, touch->queue.handle, &piece, &aside, bytes, NULL, err);
    if (status == GM_OK) status = gm__opencl_queue_order(device, &touch->queue, err);
  }
  return status;
}

static gm_status opencl_commit_unified(gm__opencl_device *device, const opencl_touch *touch, const gm_memory *memory,
                                       uint64_t offset, uint64_t bytes, gm_error *err) {
  const gm__opencl_kind kind = gm__opencl_memory_of(memory)->kind;
  cl_int code = CL_SUCCESS;
  void *scratch = gm__opencl_usm_take(device, kind, bytes < OPENCL_PIECE ? (size_t)bytes : OPENCL_PIECE, 0, &code);
  if (!scratch) return gm__opencl_device_fail(device, code, false, "clDeviceMemAllocINTEL", err);
  gm_status status = opencl_touch_pieces(device, touch, memory, scratch, offset, offset + bytes, err);
  status = gm__opencl_point_after(device, touch->queue.handle, status, NULL, err);
  gm__opencl_pointer_free(device, kind, scratch);
  return status;
}

gm_status gm__opencl_commit(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                            gm_error *err) {
  gm__opencl_device *opened = device;
  const gm__opencl_memory *record = gm__opencl_memory_of(memory);
  opencl_touch touch = {.buffer = NULL};
  if (bytes == 0) return GM_OK;
  const gm_status status = gm__opencl_queue_of(opened, stream, &touch.queue, err);
  if (status != GM_OK) return status;
  if (!record->buffer) return opencl_commit_unified(opened, &touch, memory, offset, bytes, err);
  return opencl_commit_part(opened, &touch, record, offset, bytes, err);
}
