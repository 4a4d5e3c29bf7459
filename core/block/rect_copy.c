#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/block/rect.h"
#include "core/block/span_copy.h"
#include "gm/copy.h"

/* Strided copies. The backend gets the whole box where it can and where the block is in one memory. Otherwise the box
 * goes row by row. Invariant: work by rows has one point, or none, as in span_copy.c. */

typedef struct rect_job {
  const char *op;
  gm_rect rect;                 /* checked; offsets are inside the blocks */
  gm_pool *dst_pool, *src_pool; /* NULL: that side is the host's */
  const gm_block *dst, *src;
  void *to;
  const void *from;
  gm_stream *stream;
  gm_point *out;
} rect_job;

/* ---- as a whole ---- */

/* The memory behind one side. NOT_SUPPORTED: it is several. */
static gm_status rect_open(const rect_job *job, bool of_dst, gm__access *out, gm_error *err) {
  const gm_rect *rect = &job->rect;
  if (of_dst) {
    return gm__access_open(job->dst_pool, job->dst, rect->dst_offset, gm__rect_dst_span(rect), job->op, out, err);
  }
  return gm__access_open(job->src_pool, job->src, rect->src_offset, gm__rect_src_span(rect), job->op, out, err);
}

static gm_status rect_check_pair(const rect_job *job, const gm__access *dst, const gm__access *src, gm_error *err) {
  if (dst->device != src->device) {
    return gm__bad_argument(err, job->op, "`src_pool` and `dst_pool` are on different devices");
  }
  const bool one = dst->memory.handle == src->memory.handle;
  if (!one || !gm__rect_meets_itself(&job->rect, src->offset, dst->offset)) return GM_OK;
  return gm__bad_argument(err, job->op, "the boxes overlap in one memory");
}

static gm_status rect_submit(const rect_job *job, const gm__access *dst, const gm__access *src, const gm_stream *on,
                             gm_backend_point *point, gm_error *err) {
  const gm_device *device = on->device;
  const gm_backend_ops *ops = gm__submitting(device);
  gm_rect rect = job->rect;
  if (dst) rect.dst_offset = dst->offset;
  if (src) rect.src_offset = src->offset;
  if (!src) return ops->rect_to_device(device->handle, on->handle, &dst->memory, job->from, &rect, point, err);
  if (!dst) return ops->rect_to_host(device->handle, on->handle, &src->memory, job->to, &rect, point, err);
  return ops->rect_copy(device->handle, on->handle, &dst->memory, &src->memory, &rect, point, err);
}

/* NOT_SUPPORTED: the backend has no boxes, or a block is in several memories. */
static gm_status rect_whole(const rect_job *job, gm_error *err) {
  gm__access dst = {.device = NULL}, src = {.device = NULL};
  gm_stream *on = NULL;
  gm_backend_point point = {0};
  gm_status status = job->dst ? rect_open(job, true, &dst, err) : GM_OK;
  if (!status && job->src) status = rect_open(job, false, &src, err);
  if (!status && job->src && job->dst) status = rect_check_pair(job, &dst, &src, err);
  if (!status) status = gm__access_stream(job->dst ? dst.device : src.device, job->stream, job->op, &on, err);
  if (status) return status;
  status = rect_submit(job, job->dst ? &dst : NULL, job->src ? &src : NULL, on, job->stream && job->out ? &point : NULL,
                       err);
  if (!status && job->out) *job->out = job->stream ? (gm_point){on->id, point.handle, point.value} : (gm_point){0};
  return gm__error_of(job->op, status, err);
}

/* ---- row by row ---- */

static gm_status rect_row(const rect_job *job, uint64_t slice, uint64_t row, gm_point *out, gm_error *err) {
  const gm_rect *rect = &job->rect;
  const uint64_t from = rect->src_offset + slice * rect->src_slice_pitch + row * rect->src_row_pitch;
  const uint64_t to = rect->dst_offset + slice * rect->dst_slice_pitch + row * rect->dst_row_pitch;
  if (!job->src) {
    return gm_block_write(job->dst_pool, job->dst, to, (const unsigned char *)job->from + from, rect->row_bytes,
                          job->stream, out, err);
  }
  if (!job->dst) {
    return gm_block_read(job->src_pool, job->src, from, (unsigned char *)job->to + to, rect->row_bytes, job->stream,
                         out, err);
  }
  return gm_block_copy(job->dst_pool, job->dst, to, job->src_pool, job->src, from, rect->row_bytes, job->stream, out,
                       err);
}

/* The last row's point comes after all rows. */
static gm_status rect_last_row(const rect_job *job, bool several, gm_error *err) {
  gm_status status = GM_OK;
  const bool bare = several && job->stream && job->out && job->stream->kind != GM_STREAM_FIFO;
  if (bare) status = gm_stream_barrier(job->stream, err);
  return status ? status : rect_row(job, job->rect.slices - 1, job->rect.rows - 1, job->out, err);
}

/* Ends work of rows that were begun when a later one failed. */
static gm_status rect_settle(const rect_job *job, gm_status status, uint64_t begun, gm_error *err) {
  if (!status || !begun || !job->stream || !job->out || gm__stream_captured(job->stream)) return status;
  const gm_status drained = gm__order_drain(job->stream, job->op, err);
  return drained ? drained : status;
}

/* The ranges of both blocks, which may be in several memories, before the first row moves. `empty`: their places. */
static gm_status rect_check_ends(const rect_job *job, bool empty, gm_error *err) {
  const gm_rect none = {.src_offset = 0}, *rect = empty ? &none : &job->rect;
  const uint64_t there = empty ? 0 : gm__rect_dst_span(rect), here = empty ? 0 : gm__rect_src_span(rect);
  gm__span_copy side;
  gm_status status = GM_OK;
  if (job->dst) status = gm__span_copy_open(job->dst_pool, job->dst, rect->dst_offset, there, job->op, &side, err);
  if (status || !job->src) return status;
  return gm__span_copy_open(job->src_pool, job->src, rect->src_offset, here, job->op, &side, err);
}

static gm_status rect_by_rows(const rect_job *job, gm_error *err) {
  gm_status status = rect_check_ends(job, false, err);
  if (status) return status;
  gm_device *device = (job->dst ? job->dst_pool : job->src_pool)->device;
  uint64_t begun = 0, left = gm__mul_sat(job->rect.slices, job->rect.rows) - 1; /* the last one is apart */
  for (uint64_t slice = 0; slice < job->rect.slices && !status; slice++) {
    for (uint64_t row = 0; row < job->rect.rows && left && !status; row++, left--) {
      gm_point point = {0};
      status = rect_row(job, slice, row, job->out ? &point : NULL, err);
      gm_point_release(device, &point);
      begun += !status;
    }
  }
  if (!status) status = rect_last_row(job, begun > 0, err);
  return rect_settle(job, status, begun, err);
}

/* ---- the calls ---- */

/* An empty box is work that is done; its arguments are checked all the same. */
static gm_status rect_nothing(const rect_job *job, gm_error *err) {
  const gm_status status = rect_check_ends(job, true, err);
  if (!status && job->out) *job->out = (gm_point){0};
  return status;
}

static gm_status rect_run(rect_job *job, const gm_rect *given, gm_error *err) {
  bool empty = false;
  gm_error whole = {.status = GM_OK};
  gm_status status = gm__rect_read(given, job->op, &job->rect, &empty, err);
  if (!status && empty) return rect_nothing(job, err);
  const gm_rect *rect = &job->rect;
  if (!status && !job->src) {
    status = gm__rect_check_host(job->from, rect->src_offset, gm__rect_src_span(rect), "src", job->op, err);
  }
  if (!status && !job->dst) {
    status = gm__rect_check_host(job->to, rect->dst_offset, gm__rect_dst_span(rect), "dst", job->op, err);
  }
  if (status) return status;
  status = rect_whole(job, &whole);
  if (status == GM_ERR_NOT_SUPPORTED) return rect_by_rows(job, err);
  if (status && err) *err = whole;
  return status;
}

gm_status gm_block_write_rect(gm_pool *pool, const gm_block *block, const void *src, const gm_rect *rect,
                              gm_stream *stream, gm_point *out, gm_error *err) {
  GM__UNCANCELLED();
  rect_job job = {
      .op = "gm_block_write_rect", .dst_pool = pool, .dst = block, .from = src, .stream = stream, .out = out};
  if (!block) return gm__bad_argument(err, job.op, "`block` is NULL");
  return rect_run(&job, rect, err);
}

gm_status gm_block_read_rect(gm_pool *pool, const gm_block *block, void *dst, const gm_rect *rect, gm_stream *stream,
                             gm_point *out, gm_error *err) {
  GM__UNCANCELLED();
  rect_job job = {.op = "gm_block_read_rect", .src_pool = pool, .src = block, .to = dst, .stream = stream, .out = out};
  if (!block) return gm__bad_argument(err, job.op, "`block` is NULL");
  return rect_run(&job, rect, err);
}

gm_status gm_block_copy_rect(gm_pool *dst_pool, const gm_block *dst, gm_pool *src_pool, const gm_block *src,
                             const gm_rect *rect, gm_stream *stream, gm_point *out, gm_error *err) {
  GM__UNCANCELLED();
  rect_job job = {.op = "gm_block_copy_rect",
                  .dst_pool = dst_pool,
                  .dst = dst,
                  .src_pool = src_pool,
                  .src = src,
                  .stream = stream,
                  .out = out};
  if (!dst || !src) return gm__bad_argument(err, job.op, "`%s` is NULL", dst ? "src" : "dst");
  return rect_run(&job, rect, err);
}
