#include "core/block/span_copy.h"

#include "core/base/saturate.h"
#include "core/pool/spans.h"

/* Invariant: the work on a range in several memories has one point, or none. Each part but the last has arrived when
 * its call returns, or the stream's order puts the last part's point after it. */

enum { SPAN_COPY_PATTERN_MOST = 16 };

typedef struct span_copy_work {
  gm__span_copy *copy, *from; /* `from` is the source of a copy */
  gm__transfer what;
  gm_stream *stream;
  gm_point *out;
} span_copy_work;

/* ---- memory by memory ---- */

/* Opens the memory that has the next byte. */
static gm_status span_copy_enter(gm__span_copy *copy, gm_error *err) {
  gm_block_span span = {.block = *copy->block, .bytes = copy->block->bytes};
  gm__spans_at(copy->pool, copy->block, copy->next, &span); /* if the block is gone, gm__access_open says so */
  const uint64_t inside = copy->next - span.offset, bytes = gm__min(copy->left, span.bytes - inside);
  copy->next += bytes;
  copy->left -= bytes;
  return gm__access_open(copy->pool, &span.block, inside, bytes, copy->op, &copy->here, err);
}

gm_status gm__span_copy_open(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes, const char *op,
                             gm__span_copy *out, gm_error *err) {
  *out = (gm__span_copy){.pool = pool, .block = block, .op = op};
  if (!pool || !block || !gm__spans_is(block)) {
    return gm__access_open(pool, block, offset, bytes, op, &out->here, err);
  }
  gm_status status = gm__access_check_spanned(pool, block, offset, bytes, op, err);
  out->next = offset;
  out->left = bytes;
  return status ? status : span_copy_enter(out, err);
}

gm_status gm__span_copy_pass(gm__span_copy *copy, uint64_t bytes, gm_error *err) {
  copy->here.offset += bytes;
  copy->here.bytes -= bytes;
  return copy->here.bytes || !copy->left ? GM_OK : span_copy_enter(copy, err);
}

/* ---- work on all of it ---- */

/* Transfers one part, which begins `at` bytes behind the first. */
static gm_status span_copy_part(const span_copy_work *work, const gm__access *part, uint64_t at, gm_point *out,
                                gm_error *err) {
  unsigned char pattern[SPAN_COPY_PATTERN_MOST];
  gm__transfer what = work->what;
  gm__access from = {.bytes = part->bytes};
  const unsigned char *src = what.src;
  if (work->from) {
    from = work->from->here;
    from.bytes = part->bytes;
    what.from = &from;
  } else if (what.kind == GM__TRANSFER_FILL) { /* the pattern goes on where the part before ended */
    for (uint32_t i = 0; i < what.pattern_bytes; i++) pattern[i] = src[(at + i) % what.pattern_bytes];
    what.src = pattern;
  } else if (at) {
    if (src) what.src = src + at;
    if (what.dst) what.dst = (unsigned char *)what.dst + at;
  }
  return gm__range_run(part, &what, work->stream, out, work->copy->op, err);
}

static gm_status span_copy_step(const span_copy_work *work, const gm__access *part, uint64_t at, bool last,
                                gm_error *err) {
  gm_point point = {0};
  gm_status status = GM_OK;
  if (last) {
    const bool several = at > 0 && work->stream && work->out;
    if (several && work->stream->kind != GM_STREAM_FIFO) status = gm_stream_barrier(work->stream, err);
    return status ? status : span_copy_part(work, part, at, work->out, err);
  }
  status = span_copy_part(work, part, at, work->out ? &point : NULL, err);
  gm_point_release(part->device, &point); /* the last one is enough */
  return status;
}

static gm_status span_copy_run(const span_copy_work *work, gm_error *err) {
  gm__span_copy *copy = work->copy;
  gm_status status = GM_OK;
  uint64_t at = 0;
  for (bool last = false; !status && !last;) {
    gm__access part = copy->here;
    if (work->from) part.bytes = gm__min(part.bytes, work->from->here.bytes);
    last = part.bytes == copy->here.bytes && !copy->left;
    status = span_copy_step(work, &part, at, last, err);
    if (status || last) break;
    at += part.bytes;
    status = gm__span_copy_pass(copy, part.bytes, err);
    if (!status && work->from) status = gm__span_copy_pass(work->from, part.bytes, err);
  }
  const bool under_way = status && at > 0 && work->stream && work->out;
  if (!under_way || gm__stream_captured(work->stream)) return status;
  const gm_status drained =
      gm__order_drain(work->stream, copy->op, err); /* what was begun is done, or the caller is told */
  return drained ? drained : status;
}

gm_status gm__span_copy_run(gm__span_copy *copy, const gm__transfer *what, gm_stream *stream, gm_point *out,
                            gm_error *err) {
  return span_copy_run(&(span_copy_work){copy, NULL, *what, stream, out}, err);
}

gm_status gm__span_copy_copy(gm__span_copy *dst, gm__span_copy *src, gm_stream *stream, gm_point *out, gm_error *err) {
  const span_copy_work work = {dst, src, {.kind = GM__TRANSFER_COPY}, stream, out};
  return span_copy_run(&work, err);
}
