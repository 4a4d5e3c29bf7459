#include "backends/opencl/opencl_commit.h"

#include "backends/opencl/opencl_move.h"
#include "backends/opencl/opencl_point.h"
#include "backends/opencl/opencl_pointer.h"
#include "backends/opencl/opencl_status.h"
#include "backends/opencl/opencl_stream.h"
#include "core/base/error.h"

/* Contents must stay, so each page's first byte is written with its own value, on the device: one rectangle copy
 * gathers the bytes of many pages (a row is one byte, the pitch is a page) into a small buffer, a second one puts them
 * back. clEnqueueMigrateMemObjects would be the named way, but it is a hint, and on PoCL, whose pages come from the
 * system when they are touched, it does nothing. No other stream may write the range meanwhile. A page is taken as
 * 4096 bytes: nothing hands out smaller ones, and a larger one is merely touched more often. */

enum { OPENCL_PAGE = 4096, OPENCL_PAGES_AT_ONCE = 16384 }; /* 64 MiB and a buffer of 16 KiB at a time */

typedef struct opencl_touch {
  cl_command_queue queue;
  gm_stream_kind kind;
  cl_mem buffer;
  cl_mem scratch;
} opencl_touch;

static gm_status opencl_touch_pages(gm__opencl_device *device, const opencl_touch *touch, uint64_t at, uint64_t pages,
                                    gm_error *err) {
  const size_t place[3] = {(size_t)at, 0, 0}, zero[3] = {0, 0, 0}, region[3] = {1, (size_t)pages, 1};
  const gm__opencl_syms *cl = device->cl;
  cl_int code = cl->clEnqueueCopyBufferRect(touch->queue, touch->buffer, touch->scratch, place, zero, region,
                                            OPENCL_PAGE, 0, 1, 0, 0, NULL, NULL);
  if (code != CL_SUCCESS) return gm__opencl_device_fail(device, code, false, "clEnqueueCopyBufferRect", err);
  const gm_status status = gm__opencl_stream_order(device, touch->queue, touch->kind, err);
  if (status != GM_OK) return status;
  code = cl->clEnqueueCopyBufferRect(touch->queue, touch->scratch, touch->buffer, zero, place, region, 1, 0,
                                     OPENCL_PAGE, 0, 0, NULL, NULL);
  if (code != CL_SUCCESS) return gm__opencl_device_fail(device, code, false, "clEnqueueCopyBufferRect", err);
  return gm__opencl_stream_order(device, touch->queue, touch->kind, err);
}

/* [at, end): the first byte, each page's distance after it, and the last byte, whose page may begin in between. */
static gm_status opencl_touch_range(gm__opencl_device *device, const opencl_touch *touch, uint64_t at, uint64_t end,
                                    gm_error *err) {
  const uint64_t last = end - 1;
  gm_status status = gm__opencl_stream_order(device, touch->queue, touch->kind, err);
  while (at < end && status == GM_OK) {
    uint64_t pages = (last - at) / OPENCL_PAGE + 1;
    if (pages > OPENCL_PAGES_AT_ONCE) pages = OPENCL_PAGES_AT_ONCE;
    status = opencl_touch_pages(device, touch, at, pages, err);
    at += pages * OPENCL_PAGE;
  }
  return status == GM_OK ? opencl_touch_pages(device, touch, last, 1, err) : status;
}

/* The end of a commit, with or without success: nothing of it runs on. */
static gm_status opencl_touch_end(gm__opencl_device *device, cl_command_queue queue, gm_status status, gm_error *err) {
  if (status == GM_OK) return gm__opencl_point_mark(device, queue, NULL, err);
  device->cl->clFinish(queue);
  return status;
}

static gm_status opencl_commit_buffer(gm__opencl_device *device, opencl_touch *touch, uint64_t start, uint64_t bytes,
                                      gm_error *err) {
  cl_int code = CL_SUCCESS;
  touch->scratch = device->cl->clCreateBuffer(device->context, CL_MEM_READ_WRITE, OPENCL_PAGES_AT_ONCE, NULL, &code);
  if (!touch->scratch) return gm__opencl_device_fail(device, code, false, "clCreateBuffer", err);
  gm_status status = opencl_touch_range(device, touch, start, start + bytes, err);
  status = opencl_touch_end(device, touch->queue, status, err);
  device->cl->clReleaseMemObject(touch->scratch);
  return status;
}

/* USM has no boxes: whole pieces go out and come back. */
enum { OPENCL_PIECE = 4 << 20 };

static gm_status opencl_touch_pieces(gm__opencl_device *device, const opencl_touch *touch, const gm_memory *memory,
                                     void *scratch, uint64_t at, uint64_t end, gm_error *err) {
  const gm__opencl_place aside = gm__opencl_place_of_host(scratch);
  gm_status status = gm__opencl_stream_order(device, touch->queue, touch->kind, err);
  for (; at < end && status == GM_OK; at += OPENCL_PIECE) {
    const gm__opencl_place piece = gm__opencl_place_of(memory, at);
    const uint64_t bytes = end - at < OPENCL_PIECE ? end - at : OPENCL_PIECE;
    status = gm__opencl_move(device, touch->queue, &aside, &piece, bytes, NULL, err);
    if (status == GM_OK) status = gm__opencl_stream_order(device, touch->queue, touch->kind, err);
    if (status == GM_OK) status = gm__opencl_move(device, touch->queue, &piece, &aside, bytes, NULL, err);
    if (status == GM_OK) status = gm__opencl_stream_order(device, touch->queue, touch->kind, err);
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
  status = opencl_touch_end(device, touch->queue, status, err);
  gm__opencl_pointer_free(device, kind, scratch);
  return status;
}

gm_status gm__opencl_commit(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                            gm_error *err) {
  gm__opencl_device *opened = device;
  const gm__opencl_memory *record = gm__opencl_memory_of(memory);
  opencl_touch touch = {.buffer = record->buffer};
  if (bytes == 0) return GM_OK;
  const gm_status status = gm__opencl_stream_queue(opened, stream, &touch.queue, &touch.kind, err);
  if (status != GM_OK) return status;
  if (!record->buffer) return opencl_commit_unified(opened, &touch, memory, offset, bytes, err);
  return opencl_commit_buffer(opened, &touch, record->origin + offset, bytes, err);
}
