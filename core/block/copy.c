#include <inttypes.h>

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/block/span_copy.h"
#include "gm/copy.h"

/* The public copies. A block and a range become one memory or several (span_copy.h), a stream is chosen, and the
 * backend does the work. */

gm_status gm_block_write(gm_pool *pool, const gm_block *block, uint64_t offset, const void *src, uint64_t bytes,
                         gm_stream *stream, gm_point *out, gm_error *err) {
  GM__UNCANCELLED();
  gm__span_copy copy;
  gm_status status = gm__span_copy_open(pool, block, offset, bytes, "gm_block_write", &copy, err);
  const gm__transfer what = {.kind = GM__TRANSFER_WRITE, .src = src};
  return status ? status : gm__span_copy_run(&copy, &what, stream, out, err);
}

gm_status gm_block_read(gm_pool *pool, const gm_block *block, uint64_t offset, void *dst, uint64_t bytes,
                        gm_stream *stream, gm_point *out, gm_error *err) {
  GM__UNCANCELLED();
  gm__span_copy copy;
  gm_status status = gm__span_copy_open(pool, block, offset, bytes, "gm_block_read", &copy, err);
  const gm__transfer what = {.kind = GM__TRANSFER_READ, .dst = dst};
  return status ? status : gm__span_copy_run(&copy, &what, stream, out, err);
}

static gm_status copy_check_pair(const gm__access *dst, const gm__access *src, const char *op, gm_error *err) {
  const bool apart = dst->offset >= src->offset + src->bytes || src->offset >= dst->offset + dst->bytes;
  if (dst->memory.handle != src->memory.handle || apart) return GM_OK;
  return gm__bad_argument(err, op, "the ranges overlap: %" PRIu64 " bytes from %" PRIu64 " to %" PRIu64, dst->bytes,
                          src->offset, dst->offset);
}

/* Compares one part of the destination with all of the source. */
static gm_status copy_check_part(const gm__access *dst, gm__span_copy src, gm_error *err) {
  gm_status status = copy_check_pair(dst, &src.here, src.op, err);
  while (!status && src.left) {
    status = gm__span_copy_pass(&src, src.here.bytes, err);
    if (!status) status = copy_check_pair(dst, &src.here, src.op, err);
  }
  return status;
}

gm_status gm__span_copy_check(gm__span_copy dst, const gm__span_copy *src, gm_error *err) {
  if (dst.here.device != src->here.device) {
    return gm__bad_argument(err, dst.op, "`src_pool` and `dst_pool` are on different devices");
  }
  gm_status status = copy_check_part(&dst.here, *src, err);
  while (!status && dst.left) {
    status = gm__span_copy_pass(&dst, dst.here.bytes, err);
    if (!status) status = copy_check_part(&dst.here, *src, err);
  }
  return status;
}

gm_status gm_block_copy(gm_pool *dst_pool, const gm_block *dst, uint64_t dst_offset, gm_pool *src_pool,
                        const gm_block *src, uint64_t src_offset, uint64_t bytes, gm_stream *stream, gm_point *out,
                        gm_error *err) {
  GM__UNCANCELLED();
  gm__span_copy to, from = {.left = 0};
  gm_status status = gm__span_copy_open(dst_pool, dst, dst_offset, bytes, "gm_block_copy", &to, err);
  if (!status) status = gm__span_copy_open(src_pool, src, src_offset, bytes, "gm_block_copy", &from, err);
  if (!status) status = gm__span_copy_check(to, &from, err);
  return status ? status : gm__span_copy_copy(&to, &from, stream, out, err);
}

/* Records all that is left of the copy. */
static gm_status copy_record(gm__span_copy *to, gm__span_copy *from, uintptr_t native, gm_error *err) {
  const gm_device *device = to->here.device;
  gm_status status = GM_OK;
  while (!status && to->here.bytes) {
    const uint64_t bytes = gm__min(to->here.bytes, from->here.bytes);
    const gm_copy_item item = {&from->here.memory, from->here.offset, &to->here.memory, to->here.offset, bytes};
    status = device->ops->copy_record(device->handle, native, &item, err);
    if (!status) status = gm__span_copy_pass(to, bytes, err);
    if (!status) status = gm__span_copy_pass(from, bytes, err);
  }
  if (status != GM_ERR_NOT_SUPPORTED) return gm__error_of(to->op, status, err);
  return gm__fail(err, status, to->op,
                  "backend %s writes into no command buffer of the engine: let gm_block_copy submit to an adopted "
                  "stream, which may be one that is being captured",
                  device->info.backend);
}

gm_status gm_block_copy_record(gm_pool *dst_pool, const gm_block *dst, uint64_t dst_offset, gm_pool *src_pool,
                               const gm_block *src, uint64_t src_offset, uint64_t bytes,
                               uintptr_t native_command_buffer, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_block_copy_record";
  gm__span_copy to, from = {.left = 0};
  if (!native_command_buffer) return gm__bad_argument(err, op, "`native_command_buffer` is 0");
  gm_status status = gm__span_copy_open(dst_pool, dst, dst_offset, bytes, op, &to, err);
  if (!status) status = gm__span_copy_open(src_pool, src, src_offset, bytes, op, &from, err);
  if (!status) status = gm__span_copy_check(to, &from, err);
  return status ? status : copy_record(&to, &from, native_command_buffer, err);
}

static gm_status copy_check_pattern(const void *pattern, uint32_t pattern_bytes, gm_error *err) {
  if (!pattern) return gm__bad_argument(err, "gm_block_fill", "`pattern` is NULL");
  bool power = pattern_bytes && !(pattern_bytes & (pattern_bytes - 1));
  if (power && pattern_bytes <= 16) return GM_OK;
  return gm__bad_argument(err, "gm_block_fill", "`pattern_bytes` must be 1, 2, 4, 8 or 16, is %u", pattern_bytes);
}

gm_status gm_block_fill(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes, const void *pattern,
                        uint32_t pattern_bytes, gm_stream *stream, gm_point *out, gm_error *err) {
  GM__UNCANCELLED();
  gm__span_copy copy;
  gm_status status = gm__span_copy_open(pool, block, offset, bytes, "gm_block_fill", &copy, err);
  if (!status) status = copy_check_pattern(pattern, pattern_bytes, err);
  const gm__transfer what = {.kind = GM__TRANSFER_FILL, .src = pattern, .pattern_bytes = pattern_bytes};
  return status ? status : gm__span_copy_run(&copy, &what, stream, out, err);
}
