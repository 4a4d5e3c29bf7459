#include <inttypes.h>

#include "core/base/error.h"
#include "core/pool/stretch.h"
#include "gm/copy.h"

/* The public copies: a block and a range become memory, or memories (core/pool/stretch.c), a stream is chosen, the
 * backend does the work. */

gm_status gm_block_write(gm_pool *pool, const gm_block *block, uint64_t offset, const void *src, uint64_t bytes,
                         gm_stream *stream, gm_point *out, gm_error *err) {
  gm__stretch stretch;
  gm_status status = gm__stretch_open(pool, block, offset, bytes, "gm_block_write", &stretch, err);
  return status ? status : gm__stretch_write(&stretch, src, stream, out, err);
}

gm_status gm_block_read(gm_pool *pool, const gm_block *block, uint64_t offset, void *dst, uint64_t bytes,
                        gm_stream *stream, gm_point *out, gm_error *err) {
  gm__stretch stretch;
  gm_status status = gm__stretch_open(pool, block, offset, bytes, "gm_block_read", &stretch, err);
  return status ? status : gm__stretch_read(&stretch, dst, stream, out, err);
}

static gm_status copy_check_pair(const gm__access *dst, const gm__access *src, gm_error *err) {
  const bool apart = dst->offset >= src->offset + src->bytes || src->offset >= dst->offset + dst->bytes;
  if (dst->memory.handle != src->memory.handle || apart) return GM_OK;
  return gm__bad_argument(err, "gm_block_copy", "the ranges overlap: %" PRIu64 " bytes from %" PRIu64 " to %" PRIu64,
                          dst->bytes, src->offset, dst->offset);
}

/* One part of the destination against all of the source. */
static gm_status copy_check_part(const gm__access *dst, gm__stretch src, gm_error *err) {
  gm_status status = copy_check_pair(dst, &src.here, err);
  while (!status && src.left) {
    status = gm__stretch_pass(&src, src.here.bytes, err);
    if (!status) status = copy_check_pair(dst, &src.here, err);
  }
  return status;
}

static gm_status copy_check_ranges(gm__stretch dst, const gm__stretch *src, gm_error *err) {
  if (dst.here.device != src->here.device) {
    return gm__bad_argument(err, "gm_block_copy", "`src_pool` and `dst_pool` are on different devices");
  }
  gm_status status = copy_check_part(&dst.here, *src, err);
  while (!status && dst.left) {
    status = gm__stretch_pass(&dst, dst.here.bytes, err);
    if (!status) status = copy_check_part(&dst.here, *src, err);
  }
  return status;
}

gm_status gm_block_copy(gm_pool *dst_pool, const gm_block *dst, uint64_t dst_offset, gm_pool *src_pool,
                        const gm_block *src, uint64_t src_offset, uint64_t bytes, gm_stream *stream, gm_point *out,
                        gm_error *err) {
  gm__stretch to, from;
  gm_status status = gm__stretch_open(dst_pool, dst, dst_offset, bytes, "gm_block_copy", &to, err);
  if (!status) status = gm__stretch_open(src_pool, src, src_offset, bytes, "gm_block_copy", &from, err);
  if (!status) status = copy_check_ranges(to, &from, err);
  return status ? status : gm__stretch_copy(&to, &from, stream, out, err);
}

static gm_status copy_check_pattern(const void *pattern, uint32_t pattern_bytes, gm_error *err) {
  if (!pattern) return gm__bad_argument(err, "gm_block_fill", "`pattern` is NULL");
  bool power = pattern_bytes && !(pattern_bytes & (pattern_bytes - 1));
  if (power && pattern_bytes <= 16) return GM_OK;
  return gm__bad_argument(err, "gm_block_fill", "`pattern_bytes` must be 1, 2, 4, 8 or 16, is %u", pattern_bytes);
}

gm_status gm_block_fill(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes, const void *pattern,
                        uint32_t pattern_bytes, gm_stream *stream, gm_point *out, gm_error *err) {
  gm__stretch stretch;
  gm_status status = gm__stretch_open(pool, block, offset, bytes, "gm_block_fill", &stretch, err);
  if (!status) status = copy_check_pattern(pattern, pattern_bytes, err);
  return status ? status : gm__stretch_fill(&stretch, pattern, pattern_bytes, stream, out, err);
}
