#include "backends/opencl/opencl_entries.h"
#include "backends/opencl/opencl_move.h"
#include "backends/opencl/opencl_part.h"
#include "backends/opencl/opencl_point.h"
#include "backends/opencl/opencl_queue.h"
#include "core/base/saturate.h"

/* Copies of boxes. OpenCL's boxes are narrower than gm's. A slice pitch must be a multiple of the row pitch. Within one
 * buffer both sides must have equal pitches. gm cuts a box that does not fit into slices or into rows. A box of one
 * slice has no slice pitch, and a box of one row has no pitch. USM has no boxes, so each row is a plain copy. PoCL 3.1
 * crashes when it copies a box from or to a sub-buffer: there such rows are plain copies, too. */

typedef struct opencl_rect_side { /* one side of the copy, in host or device memory */
  cl_mem buffer;                  /* NULL: only an address */
  bool viewed;                    /* the engine uses sub-buffers of `buffer` */
  uintptr_t pointer;              /* the address of offset 0, in host memory or USM */
  uint64_t offset, row_pitch, slice_pitch;
} opencl_rect_side;

typedef struct opencl_rect_job {
  gm__opencl_queue queue;
  bool by_rows;  /* one side is USM, or the driver cannot copy this box */
  void *to_host; /* at most one of `to_host` and `from_host` is set */
  const void *from_host;
  opencl_rect_side src, dst;
  uint64_t row_bytes, rows, slices;
} opencl_rect_job;

static opencl_rect_side opencl_rect_normal(const gm_memory *memory, const void *host, uint64_t offset,
                                           uint64_t row_pitch, uint64_t slice_pitch, const gm_rect *rect) {
  opencl_rect_side side = {.offset = offset, .row_pitch = row_pitch, .slice_pitch = slice_pitch};
  if (side.row_pitch == 0) side.row_pitch = rect->row_bytes;
  if (side.slice_pitch == 0) side.slice_pitch = side.row_pitch * rect->rows;
  if (rect->rows == 1) side.row_pitch = rect->row_bytes; /* without a second row any pitch is valid */
  if (memory) {
    const gm__opencl_memory *record = gm__opencl_memory_of(memory);
    side.buffer = record->buffer;
    side.viewed = atomic_load(&record->viewed);
    side.offset += record->origin;
    if (!record->buffer) side.pointer = record->pointer;
  } else {
    side.pointer = (uintptr_t)host;
  }
  return side;
}

static gm__opencl_place opencl_rect_place(const opencl_rect_side *side) {
  if (side->buffer) return (gm__opencl_place){.buffer = side->buffer, .offset = side->offset};
  return (gm__opencl_place){.pointer = side->pointer + (uintptr_t)side->offset};
}

static cl_int opencl_rect_enqueue(const gm__opencl_device *device, const opencl_rect_job *job, uint64_t rows,
                                  uint64_t slices) {
  const size_t src[3] = {(size_t)job->src.offset, 0, 0}, dst[3] = {(size_t)job->dst.offset, 0, 0};
  const size_t region[3] = {(size_t)job->row_bytes, (size_t)rows, (size_t)slices};
  const size_t src_row = (size_t)(rows > 1 || slices > 1 ? job->src.row_pitch : 0);
  const size_t dst_row = (size_t)(rows > 1 || slices > 1 ? job->dst.row_pitch : 0);
  const size_t src_slice = (size_t)(slices > 1 ? job->src.slice_pitch : 0);
  const size_t dst_slice = (size_t)(slices > 1 ? job->dst.slice_pitch : 0);
  if (job->from_host) {
    return device->cl->clEnqueueWriteBufferRect(job->queue.handle, job->dst.buffer, CL_FALSE, dst, src, region, dst_row,
                                                dst_slice, src_row, src_slice, job->from_host, 0, NULL, NULL);
  }
  if (job->to_host) {
    return device->cl->clEnqueueReadBufferRect(job->queue.handle, job->src.buffer, CL_FALSE, src, dst, region, src_row,
                                               src_slice, dst_row, dst_slice, job->to_host, 0, NULL, NULL);
  }
  return device->cl->clEnqueueCopyBufferRect(job->queue.handle, job->src.buffer, job->dst.buffer, src, dst, region,
                                             src_row, src_slice, dst_row, dst_slice, 0, NULL, NULL);
}

static bool opencl_rect_side_fits(const opencl_rect_side *side, uint64_t rows) {
  return side->slice_pitch % side->row_pitch == 0 && side->slice_pitch / side->row_pitch >= rows;
}

/* The largest box that one command takes: the whole, a slice, or a row. */
static void opencl_rect_step(const opencl_rect_job *job, uint64_t *rows, uint64_t *slices) {
  const bool same = job->src.buffer == job->dst.buffer;
  const bool rows_fit = !same || job->src.row_pitch == job->dst.row_pitch;
  const bool slices_fit = (!same || job->src.slice_pitch == job->dst.slice_pitch) &&
                          opencl_rect_side_fits(&job->src, job->rows) && opencl_rect_side_fits(&job->dst, job->rows);
  *rows = rows_fit && !job->by_rows ? job->rows : 1;
  *slices = rows_fit && slices_fit && !job->by_rows ? job->slices : 1;
}

static gm_status opencl_rect_part(gm__opencl_device *device, const opencl_rect_job *part, uint64_t rows,
                                  uint64_t slices, gm_error *err) {
  if (part->by_rows) {
    const gm__opencl_place dst = opencl_rect_place(&part->dst), src = opencl_rect_place(&part->src);
    return gm__opencl_move(device, part->queue.handle, &dst, &src, part->row_bytes, NULL, err);
  }
  const cl_int code = opencl_rect_enqueue(device, part, rows, slices);
  return gm__opencl_check(device, code, "clEnqueueBufferRect", err);
}

static gm_status opencl_rect_run(gm__opencl_device *device, const opencl_rect_job *job, gm_error *err) {
  uint64_t rows = 0, slices = 0;
  opencl_rect_step(job, &rows, &slices);
  for (uint64_t slice = 0; slice < job->slices; slice += slices) {
    for (uint64_t row = 0; row < job->rows; row += rows) {
      opencl_rect_job part = *job;
      part.src.offset += slice * job->src.slice_pitch + row * job->src.row_pitch;
      part.dst.offset += slice * job->dst.slice_pitch + row * job->dst.row_pitch;
      const gm_status status = opencl_rect_part(device, &part, rows, slices, err);
      if (status != GM_OK) return status;
    }
  }
  return GM_OK;
}

/* From the first byte of the box to its last one. */
static gm__opencl_range opencl_rect_range(const opencl_rect_job *job, const opencl_rect_side *side) {
  const uint64_t rows = (job->rows - 1) * side->row_pitch, slices = (job->slices - 1) * side->slice_pitch;
  return (gm__opencl_range){side->buffer, side->viewed, side->offset, slices + rows + job->row_bytes};
}

/* Boxes of one buffer that touch, or nearly do. The standard's own check of overlap (CL_MEM_COPY_OVERLAP) counts a row
 * and a slice too many, also of a single row. So such rows are plain copies. */
static bool opencl_rect_is_near(const opencl_rect_job *job) {
  const uint64_t src = job->src.offset, dst = job->dst.offset, apart = src > dst ? src - dst : dst - src;
  const uint64_t row = gm__max(job->src.row_pitch, job->dst.row_pitch);
  const uint64_t slice = gm__max(gm__max(job->src.slice_pitch, job->dst.slice_pitch), job->rows * row);
  if (!job->src.buffer || job->src.buffer != job->dst.buffer) return false;
  return apart < job->slices * slice + job->rows * row + job->row_bytes;
}

/* The box in parts of its buffers, where the engine uses parts. */
static gm_status opencl_rect_run_parts(gm__opencl_device *device, opencl_rect_job *job, gm_error *err) {
  const gm__opencl_range dst = opencl_rect_range(job, &job->dst), src = opencl_rect_range(job, &job->src);
  gm__opencl_sides sides;
  job->by_rows |= opencl_rect_is_near(job);
  gm_status status = gm__opencl_sides_open(device, &dst, &src, &sides, err);
  if (status != GM_OK) return status;
  job->dst.buffer = sides.to.buffer;
  job->dst.offset = sides.to.offset;
  job->src.buffer = sides.from.buffer;
  job->src.offset = sides.from.offset;
  job->by_rows |= device->crashes_on_box && src.buffer && dst.buffer && (src.viewed || dst.viewed);
  status = opencl_rect_run(device, job, err);
  gm__opencl_sides_close(device, &sides);
  return status;
}

static gm_status opencl_rect(gm__opencl_device *device, void *stream, opencl_rect_job *job, const gm_rect *rect,
                             gm_backend_point *out, gm_error *err) {
  gm_status status = gm__opencl_queue_of(device, stream, &job->queue, err);
  if (status != GM_OK) return status;
  job->row_bytes = rect->row_bytes;
  job->rows = rect->rows;
  job->slices = rect->slices;
  job->by_rows = (!job->src.buffer && !job->from_host) || (!job->dst.buffer && !job->to_host);
  if (rect->row_bytes && rect->rows && rect->slices) status = opencl_rect_run_parts(device, job, err);
  return gm__opencl_point_after(device, job->queue.handle, status, out, err);
}

gm_status gm__opencl_rect_to_device(void *device, void *stream, const gm_memory *dst, const void *src,
                                    const gm_rect *rect, gm_backend_point *out, gm_error *err) {
  opencl_rect_job job = {
      .from_host = src,
      .src = opencl_rect_normal(NULL, src, rect->src_offset, rect->src_row_pitch, rect->src_slice_pitch, rect),
      .dst = opencl_rect_normal(dst, NULL, rect->dst_offset, rect->dst_row_pitch, rect->dst_slice_pitch, rect)};
  return opencl_rect(device, stream, &job, rect, out, err);
}

gm_status gm__opencl_rect_to_host(void *device, void *stream, const gm_memory *src, void *dst, const gm_rect *rect,
                                  gm_backend_point *out, gm_error *err) {
  opencl_rect_job job = {
      .to_host = dst,
      .src = opencl_rect_normal(src, NULL, rect->src_offset, rect->src_row_pitch, rect->src_slice_pitch, rect),
      .dst = opencl_rect_normal(NULL, dst, rect->dst_offset, rect->dst_row_pitch, rect->dst_slice_pitch, rect)};
  return opencl_rect(device, stream, &job, rect, out, err);
}

gm_status gm__opencl_rect_copy(void *device, void *stream, const gm_memory *dst, const gm_memory *src,
                               const gm_rect *rect, gm_backend_point *out, gm_error *err) {
  opencl_rect_job job = {
      .src = opencl_rect_normal(src, NULL, rect->src_offset, rect->src_row_pitch, rect->src_slice_pitch, rect),
      .dst = opencl_rect_normal(dst, NULL, rect->dst_offset, rect->dst_row_pitch, rect->dst_slice_pitch, rect)};
  return opencl_rect(device, stream, &job, rect, out, err);
}
