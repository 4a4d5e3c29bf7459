/* Copies and kernels of the null backend: the range is checked, time passes, no byte moves. With a link model each copy
 * is work of its own, and reading back takes its time. Thread-safe. */
#include "backends/null/null_backend.h"
#include "backends/null/null_device.h"
#include "backends/null/null_entries.h"
#include "backends/null/null_stream.h"
#include "core/base/error.h"

static gm_status copy_check(const gm_memory *memory, uint64_t offset, uint64_t bytes, gm_error *err) {
  if (offset <= memory->bytes && bytes <= memory->bytes - offset) return GM_OK;
  return gm__bad_argument(err, "null copy", "`offset` %llu and `bytes` %llu go beyond the %llu bytes of the memory",
                          (unsigned long long)offset, (unsigned long long)bytes, (unsigned long long)memory->bytes);
}

static gm_status copy_check_item(const gm_copy_item *item, gm_error *err) {
  const gm_status status = copy_check(item->src, item->src_offset, item->bytes, err);
  return status ? status : copy_check(item->dst, item->dst_offset, item->bytes, err);
}

gm_status gm__null_copy_to_device(void *device, void *stream, const gm_memory *dst, uint64_t offset, const void *src,
                                  uint64_t bytes, gm_backend_point *out, gm_error *err) {
  const gm_status status = copy_check(dst, offset, bytes, err);
  if (status) return status;
  const gm__link_entry entry = {
      .kind = GM__LINK_H2D, .bytes = bytes, .to = dst->address + offset, .from = (uintptr_t)src};
  return gm__null_stream_submit(device, stream, &(gm__link_op){.entry = entry}, out, err);
}

/* The contents are not kept, so there is nothing to read; a link model is there for the time that it takes. */
gm_status gm__null_copy_to_host(void *device, void *stream, const gm_memory *src, uint64_t offset, void *dst,
                                uint64_t bytes, gm_backend_point *out, gm_error *err) {
  if (!((gm__null_device *)device)->link) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "copy_to_host", "there is no memory behind a null device to read");
  }
  const gm_status status = copy_check(src, offset, bytes, err);
  if (status) return status;
  const gm__link_entry entry = {
      .kind = GM__LINK_D2H, .bytes = bytes, .to = (uintptr_t)dst, .from = src->address + offset};
  return gm__null_stream_submit(device, stream, &(gm__link_op){.entry = entry}, out, err);
}

gm_status gm__null_copy(void *device, void *stream, const gm_copy_item *item, gm_backend_point *out, gm_error *err) {
  return gm__null_copy_many(device, stream, item, 1, out, err);
}

gm_status gm__null_fill(void *device, void *stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                        const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err) {
  (void)pattern;
  const gm_status status = copy_check(dst, offset, bytes, err);
  if (status) return status;
  if (!pattern_bytes || pattern_bytes > 16 || (pattern_bytes & (pattern_bytes - 1))) {
    return gm__bad_argument(err, "fill", "`pattern_bytes` must be 1, 2, 4, 8 or 16, is %u", pattern_bytes);
  }
  const gm__link_entry entry = {.kind = GM__LINK_D2D, .bytes = bytes, .to = dst->address + offset};
  return gm__null_stream_submit(device, stream, &(gm__link_op){.entry = entry}, out, err);
}

static gm_status copy_submit(void *device, void *stream, const gm_copy_item *item, gm_backend_point *out,
                             gm_error *err) {
  const gm__link_entry entry = {.kind = GM__LINK_D2D,
                                .bytes = item->bytes,
                                .to = item->dst->address + item->dst_offset,
                                .from = item->src->address + item->src_offset};
  return gm__null_stream_submit(device, stream, &(gm__link_op){.entry = entry}, out, err);
}

gm_status gm__null_copy_many(void *device, void *stream, const gm_copy_item *items, uint32_t count,
                             gm_backend_point *out, gm_error *err) {
  for (uint32_t i = 0; i < count; i++) {
    const gm_status status = copy_check_item(&items[i], err);
    if (status) return status;
  }
  /* One piece of work, and with a link model one for each item. */
  const bool linked = ((gm__null_device *)device)->link != NULL;
  gm_backend_point mark;
  for (uint32_t i = 0; linked && i + 1 < count; i++) {
    const gm_status status = copy_submit(device, stream, &items[i], &mark, err);
    if (status) return status;
  }
  if (count) return copy_submit(device, stream, &items[count - 1], out, err);
  return gm__null_stream_submit(device, stream, &(gm__link_op){0}, out, err);
}

gm_status gm__null_launch(void *device, void *stream, const char *name, uint64_t to, uint64_t from, uint64_t bytes,
                          gm_backend_point *out, gm_error *err) {
  const gm__null_device *self = device;
  const gm__link_op like = {.entry = {.kind = GM__LINK_COMPUTE, .to = to, .from = from, .bytes = bytes}, .name = name};
  if (!self->link) return gm__fail(err, GM_ERR_NOT_SUPPORTED, "null launch", "kernels need the link model");
  return gm__null_stream_submit(device, stream, &like, out, err);
}
