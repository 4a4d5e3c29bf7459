/* Copies and fills of the CPU backend. With `stream` NULL the calling thread does the work at once. */
#include <string.h>

#include "backends/cpu/cpu_entries.h"
#include "backends/cpu/cpu_mem.h"
#include "backends/cpu/cpu_stream.h"
#include "core/base/error.h"

static gm_status copy_submit(void *stream, const gm__cpu_task *task, gm_backend_point *out, gm_error *err) {
  if (stream) return gm__cpu_stream_submit(stream, task, out, err);
  gm__cpu_task_run(task);
  if (out) *out = (gm_backend_point){0};
  return GM_OK;
}

static gm__cpu_task copy_task(const void *src, void *dst, const gm_rect *box) {
  return (gm__cpu_task){.kind = GM__CPU_COPY, .as.copy = {.src = src, .dst = dst, .box = *box}};
}

static gm_rect copy_line(uint64_t src_offset, uint64_t dst_offset, uint64_t bytes) {
  return (gm_rect){.row_bytes = bytes, .rows = 1, .slices = 1, .src_offset = src_offset, .dst_offset = dst_offset};
}

gm_status gm__cpu_copy_to_device(void *device, void *stream, const gm_memory *dst, uint64_t offset, const void *src,
                                 uint64_t bytes, gm_backend_point *out, gm_error *err) {
  const gm_rect line = copy_line(0, offset, bytes);
  return gm__cpu_rect_to_device(device, stream, dst, src, &line, out, err);
}

gm_status gm__cpu_copy_to_host(void *device, void *stream, const gm_memory *src, uint64_t offset, void *dst,
                               uint64_t bytes, gm_backend_point *out, gm_error *err) {
  const gm_rect line = copy_line(offset, 0, bytes);
  return gm__cpu_rect_to_host(device, stream, src, dst, &line, out, err);
}

gm_status gm__cpu_copy(void *device, void *stream, const gm_copy_item *item, gm_backend_point *out, gm_error *err) {
  const gm_rect line = copy_line(item->src_offset, item->dst_offset, item->bytes);
  return gm__cpu_rect_copy(device, stream, item->dst, item->src, &line, out, err);
}

gm_status gm__cpu_fill(void *device, void *stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                       const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err) {
  (void)device;
  gm__cpu_task task = {.kind = GM__CPU_FILL};
  if (!pattern_bytes || pattern_bytes > sizeof task.as.fill.pattern) {
    return gm__bad_argument(err, "fill", "`pattern_bytes` must be 1, 2, 4, 8 or 16, is %u", pattern_bytes);
  }
  task.as.fill =
      (gm__cpu_fill_task){.dst = gm__cpu_bytes(dst) + offset, .bytes = bytes, .pattern_bytes = pattern_bytes};
  memcpy(task.as.fill.pattern, pattern, pattern_bytes);
  return copy_submit(stream, &task, out, err);
}

gm_status gm__cpu_rect_to_device(void *device, void *stream, const gm_memory *dst, const void *src, const gm_rect *rect,
                                 gm_backend_point *out, gm_error *err) {
  (void)device;
  const gm__cpu_task task = copy_task(src, gm__cpu_bytes(dst), rect);
  return copy_submit(stream, &task, out, err);
}

gm_status gm__cpu_rect_to_host(void *device, void *stream, const gm_memory *src, void *dst, const gm_rect *rect,
                               gm_backend_point *out, gm_error *err) {
  (void)device;
  const gm__cpu_task task = copy_task(gm__cpu_bytes(src), dst, rect);
  return copy_submit(stream, &task, out, err);
}

gm_status gm__cpu_rect_copy(void *device, void *stream, const gm_memory *dst, const gm_memory *src, const gm_rect *rect,
                            gm_backend_point *out, gm_error *err) {
  (void)device;
  const gm__cpu_task task = copy_task(gm__cpu_bytes(src), gm__cpu_bytes(dst), rect);
  return copy_submit(stream, &task, out, err);
}

/* The stream is FIFO, so the point of the last item covers all items. The only possible failure is that the worker
 * cannot start. This happens at the first item, before anything ran. */
gm_status gm__cpu_copy_many(void *device, void *stream, const gm_copy_item *items, uint32_t count,
                            gm_backend_point *out, gm_error *err) {
  gm_backend_point last = {0};
  for (uint32_t i = 0; i < count; i++) {
    const gm_status status = gm__cpu_copy(device, stream, &items[i], out ? &last : NULL, err);
    if (status) return status;
  }
  if (out) *out = last;
  return GM_OK;
}
