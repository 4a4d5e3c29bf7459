#include "backends/opencl/opencl_commit.h"

#include "backends/opencl/opencl_mem.h"
#include "backends/opencl/opencl_point.h"
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

gm_status gm__opencl_commit(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                            gm_error *err) {
  gm__opencl_device *opened = device;
  const gm__opencl_memory *record = gm__opencl_memory_of(memory);
  const uint64_t start = record->origin + offset;
  opencl_touch touch = {.buffer = record->buffer};
  cl_int code = CL_SUCCESS;
  if (bytes == 0) return GM_OK;
  gm_status status = gm__opencl_stream_queue(opened, stream, &touch.queue, &touch.kind, err);
  if (status != GM_OK) return status;
  touch.scratch = opened->cl->clCreateBuffer(opened->context, CL_MEM_READ_WRITE, OPENCL_PAGES_AT_ONCE, NULL, &code);
  if (!touch.scratch) return gm__opencl_device_fail(opened, code, false, "clCreateBuffer", err);
  status = opencl_touch_range(opened, &touch, start, start + bytes, err);
  if (status == GM_OK) {
    status = gm__opencl_point_mark(opened, touch.queue, NULL, err);
  } else {
    opened->cl->clFinish(touch.queue);
  }
  opened->cl->clReleaseMemObject(touch.scratch);
  return status;
}
