#include "core/pool/stretch.h"

#include "core/base/saturate.h"
#include "core/pool/spanned.h"

/* Invariant: of a range in several memories each part but the last is there when its call returns, or the stream's
 * order makes the point of the last one come after it. So one point, or none, stands for all. */

enum { STRETCH_PATTERN_MOST = 16 };

/* What is done to each part of a range: it begins `at` bytes behind the first. */
typedef struct stretch_work stretch_work;
struct stretch_work {
  gm_status (*part)(const stretch_work *work, const gm__access *part, uint64_t at, gm_point *out, gm_error *err);
  gm__stretch *stretch, *from; /* `from`: of copies */
  gm_stream *stream;
  gm_point *out;
  const unsigned char *src; /* or the pattern */
  unsigned char *dst;
  uint32_t pattern_bytes;
};

/* ---- memory by memory ---- */

/* The memory that has the next byte. */
static gm_status stretch_enter(gm__stretch *stretch, gm_error *err) {
  gm_block_span span = {.block = *stretch->block, .bytes = stretch->block->bytes};
  gm__spanned_at(stretch->pool, stretch->block, stretch->next, &span); /* else it is gone, as access_open says */
  const uint64_t inside = stretch->next - span.offset, bytes = gm__min(stretch->left, span.bytes - inside);
  stretch->next += bytes;
  stretch->left -= bytes;
  return gm__access_open(stretch->pool, &span.block, inside, bytes, stretch->op, &stretch->here, err);
}

gm_status gm__stretch_open(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes, const char *op,
                           gm__stretch *out, gm_error *err) {
  *out = (gm__stretch){.pool = pool, .block = block, .op = op};
  if (!pool || !block || !gm__spanned_is(block)) {
    return gm__access_open(pool, block, offset, bytes, op, &out->here, err);
  }
  gm_status status = gm__access_check_spanned(pool, block, offset, bytes, op, err);
  out->next = offset;
  out->left = bytes;
  return status ? status : stretch_enter(out, err);
}

gm_status gm__stretch_pass(gm__stretch *stretch, uint64_t bytes, gm_error *err) {
  stretch->here.offset += bytes;
  stretch->here.bytes -= bytes;
  return stretch->here.bytes || !stretch->left ? GM_OK : stretch_enter(stretch, err);
}

/* ---- work on all of it ---- */

static gm_status stretch_step(const stretch_work *work, const gm__access *part, uint64_t at, bool last, gm_error *err) {
  gm_point point = {0};
  gm_status status = GM_OK;
  if (last) {
    const bool several = at > 0 && work->stream && work->out;
    if (several && work->stream->kind != GM_STREAM_FIFO) status = gm_stream_barrier(work->stream, err);
    return status ? status : work->part(work, part, at, work->out, err);
  }
  status = work->part(work, part, at, work->out ? &point : NULL, err);
  gm_point_release(part->device, &point); /* the last one is enough */
  return status;
}

static gm_status stretch_run(const stretch_work *work, gm_error *err) {
  gm__stretch *stretch = work->stretch;
  gm_status status = GM_OK;
  uint64_t at = 0;
  for (bool last = false; !status && !last;) {
    gm__access part = stretch->here;
    if (work->from) part.bytes = gm__min(part.bytes, work->from->here.bytes);
    last = part.bytes == stretch->here.bytes && !stretch->left;
    status = stretch_step(work, &part, at, last, err);
    if (status || last) break;
    at += part.bytes;
    status = gm__stretch_pass(stretch, part.bytes, err);
    if (!status && work->from) status = gm__stretch_pass(work->from, part.bytes, err);
  }
  const bool under_way = status && at > 0 && work->stream && work->out;
  if (!under_way || gm__stream_captured(work->stream)) return status;
  const gm_status drained = gm__order_drain(work->stream, stretch->op, err); /* what was begun is done, or is told */
  return drained ? drained : status;
}

static gm_status stretch_write_part(const stretch_work *work, const gm__access *part, uint64_t at, gm_point *out,
                                    gm_error *err) {
  return gm__access_write(part, at ? work->src + at : work->src, work->stream, out, work->stretch->op, err);
}

gm_status gm__stretch_write(gm__stretch *stretch, const void *src, gm_stream *stream, gm_point *out, gm_error *err) {
  const stretch_work work = {.part = stretch_write_part, .stretch = stretch, .stream = stream, .out = out, .src = src};
  return stretch_run(&work, err);
}

static gm_status stretch_read_part(const stretch_work *work, const gm__access *part, uint64_t at, gm_point *out,
                                   gm_error *err) {
  return gm__access_read(part, at ? work->dst + at : work->dst, work->stream, out, work->stretch->op, err);
}

gm_status gm__stretch_read(gm__stretch *stretch, void *dst, gm_stream *stream, gm_point *out, gm_error *err) {
  const stretch_work work = {.part = stretch_read_part, .stretch = stretch, .stream = stream, .out = out, .dst = dst};
  return stretch_run(&work, err);
}

/* The pattern goes on where the part before ended. */
static gm_status stretch_fill_part(const stretch_work *work, const gm__access *part, uint64_t at, gm_point *out,
                                   gm_error *err) {
  unsigned char pattern[STRETCH_PATTERN_MOST];
  const uint32_t count = work->pattern_bytes;
  for (uint32_t i = 0; i < count; i++) pattern[i] = work->src[(at + i) % count];
  return gm__access_fill(part, pattern, count, work->stream, out, work->stretch->op, err);
}

gm_status gm__stretch_fill(gm__stretch *stretch, const void *pattern, uint32_t pattern_bytes, gm_stream *stream,
                           gm_point *out, gm_error *err) {
  const stretch_work work = {.part = stretch_fill_part,
                             .stretch = stretch,
                             .stream = stream,
                             .out = out,
                             .src = pattern,
                             .pattern_bytes = pattern_bytes};
  return stretch_run(&work, err);
}

static gm_status stretch_copy_part(const stretch_work *work, const gm__access *part, uint64_t at, gm_point *out,
                                   gm_error *err) {
  (void)at;
  /* A copy has one. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
  gm__access from = work->from->here;
  from.bytes = part->bytes;
  return gm__access_copy(part, &from, work->stream, out, work->stretch->op, err);
}

gm_status gm__stretch_copy(gm__stretch *dst, gm__stretch *src, gm_stream *stream, gm_point *out, gm_error *err) {
  const stretch_work work = {.part = stretch_copy_part, .stretch = dst, .from = src, .stream = stream, .out = out};
  return stretch_run(&work, err);
}
