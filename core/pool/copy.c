#include <inttypes.h>

#include "core/base/error.h"
#include "core/pool/access.h"
#include "gm/copy.h"

/* The public copies: a block and a range become memory (core/pool/access.c checks both), a stream is chosen, the
 * backend does the work. Nothing is kept here except which range of a block is mapped, which its node remembers. */

gm_status gm_block_write(gm_pool *pool, const gm_block *block, uint64_t offset, const void *src, uint64_t bytes,
                         gm_stream *stream, gm_point *out, gm_error *err) {
  gm__access access;
  gm_status status = gm__access_open(pool, block, offset, bytes, "gm_block_write", &access, err);
  return status ? status : gm__access_write(&access, src, stream, out, "gm_block_write", err);
}

gm_status gm_block_read(gm_pool *pool, const gm_block *block, uint64_t offset, void *dst, uint64_t bytes,
                        gm_stream *stream, gm_point *out, gm_error *err) {
  gm__access access;
  gm_status status = gm__access_open(pool, block, offset, bytes, "gm_block_read", &access, err);
  return status ? status : gm__access_read(&access, dst, stream, out, "gm_block_read", err);
}

static gm_status copy_check_pair(const gm__access *dst, const gm__access *src, gm_error *err) {
  if (dst->device != src->device) {
    return gm__bad_argument(err, "gm_block_copy", "`src_pool` and `dst_pool` are on different devices");
  }
  if (dst->memory.handle != src->memory.handle) return GM_OK;
  uint64_t low = dst->offset < src->offset ? dst->offset : src->offset;
  uint64_t high = dst->offset < src->offset ? src->offset : dst->offset;
  if (high - low >= dst->bytes) return GM_OK;
  return gm__bad_argument(err, "gm_block_copy", "the ranges overlap: %" PRIu64 " bytes from %" PRIu64 " to %" PRIu64,
                          dst->bytes, src->offset, dst->offset);
}

gm_status gm_block_copy(gm_pool *dst_pool, const gm_block *dst, uint64_t dst_offset, gm_pool *src_pool,
                        const gm_block *src, uint64_t src_offset, uint64_t bytes, gm_stream *stream, gm_point *out,
                        gm_error *err) {
  gm__access to, from;
  gm_status status = gm__access_open(dst_pool, dst, dst_offset, bytes, "gm_block_copy", &to, err);
  if (status) return status;
  status = gm__access_open(src_pool, src, src_offset, bytes, "gm_block_copy", &from, err);
  if (status) return status;
  status = copy_check_pair(&to, &from, err);
  return status ? status : gm__access_copy(&to, &from, stream, out, "gm_block_copy", err);
}

static gm_status copy_check_pattern(const void *pattern, uint32_t pattern_bytes, gm_error *err) {
  if (!pattern) return gm__bad_argument(err, "gm_block_fill", "`pattern` is NULL");
  bool power = pattern_bytes && !(pattern_bytes & (pattern_bytes - 1));
  if (power && pattern_bytes <= 16) return GM_OK;
  return gm__bad_argument(err, "gm_block_fill", "`pattern_bytes` must be 1, 2, 4, 8 or 16, is %u", pattern_bytes);
}

gm_status gm_block_fill(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes, const void *pattern,
                        uint32_t pattern_bytes, gm_stream *stream, gm_point *out, gm_error *err) {
  gm__access access;
  gm_status status = gm__access_open(pool, block, offset, bytes, "gm_block_fill", &access, err);
  if (!status) status = copy_check_pattern(pattern, pattern_bytes, err);
  return status ? status : gm__access_fill(&access, pattern, pattern_bytes, stream, out, "gm_block_fill", err);
}
