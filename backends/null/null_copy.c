/* Copies of the null backend: the range is checked, time passes, no byte moves. Thread-safe. */
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
  (void)src;
  const gm_status status = copy_check(dst, offset, bytes, err);
  if (status == GM_OK) gm__null_stream_submit(device, stream, out);
  return status;
}

/* The contents are not kept, so there is nothing to read. */
gm_status gm__null_copy_to_host(void *device, void *stream, const gm_memory *src, uint64_t offset, void *dst,
                                uint64_t bytes, gm_backend_point *out, gm_error *err) {
  (void)device, (void)stream, (void)src, (void)offset, (void)dst, (void)bytes, (void)out;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "copy_to_host", "there is no memory behind a null device to read");
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
  gm__null_stream_submit(device, stream, out);
  return GM_OK;
}

gm_status gm__null_copy_many(void *device, void *stream, const gm_copy_item *items, uint32_t count,
                             gm_backend_point *out, gm_error *err) {
  for (uint32_t i = 0; i < count; i++) {
    const gm_status status = copy_check_item(&items[i], err);
    if (status) return status;
  }
  gm__null_stream_submit(device, stream, out);
  return GM_OK;
}
