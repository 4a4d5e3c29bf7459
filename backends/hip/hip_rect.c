#include "backends/hip/hip_rect.h"

#include "backends/hip/hip_copy.h"

/* Slice by slice with hipMemcpy2D: the structs of HIP's 3D copies name kinds of memory by numbers that differ between
 * versions. A row is not longer than its pitch, and a pitch has a limit (2^31 - 1 and less): what does not fit goes row
 * by row. */

enum { HIP_MOST_PITCH = 1 << 30 };

typedef struct hip_side { /* of the box in one memory */
  uint64_t at;            /* address of the first byte */
  uint64_t row_pitch, slice_pitch;
  bool host;
} hip_side;

typedef struct hip_box {
  hip_side src, dst;
  const gm_rect *rect;
} hip_box;

static hip_side hip_rect_side(uint64_t at, uint64_t row_pitch, uint64_t slice_pitch, bool host, const gm_rect *rect) {
  hip_side side = {.at = at, .row_pitch = row_pitch, .slice_pitch = slice_pitch, .host = host};
  if (side.row_pitch == 0) side.row_pitch = rect->row_bytes;
  if (side.slice_pitch == 0) side.slice_pitch = side.row_pitch * rect->rows;
  return side;
}

/* One side of a box is host memory at `pointer`, or, where that is NULL, `memory`. */
typedef struct hip_place {
  uint64_t base;
  bool host;
} hip_place;

static hip_place hip_rect_place(const gm_memory *memory, const void *pointer) {
  if (pointer) return (hip_place){(uint64_t)(uintptr_t)pointer, true};
  return memory ? (hip_place){memory->address, memory->host != NULL} : (hip_place){0};
}

static hip_side hip_rect_src(const gm_memory *memory, const void *pointer, const gm_rect *rect) {
  const hip_place place = hip_rect_place(memory, pointer);
  return hip_rect_side(place.base + rect->src_offset, rect->src_row_pitch, rect->src_slice_pitch, place.host, rect);
}

static hip_side hip_rect_dst(const gm_memory *memory, const void *pointer, const gm_rect *rect) {
  const hip_place place = hip_rect_place(memory, pointer);
  return hip_rect_side(place.base + rect->dst_offset, rect->dst_row_pitch, rect->dst_slice_pitch, place.host, rect);
}

static hipError_t hip_rect_enqueue(const gm__hip_device *device, hipStream_t stream, const hip_box *box, uint64_t slice,
                                   uint64_t row, uint64_t rows) {
  const size_t row_bytes = (size_t)box->rect->row_bytes;
  const uint64_t from = box->src.at + slice * box->src.slice_pitch + row * box->src.row_pitch;
  const uint64_t to = box->dst.at + slice * box->dst.slice_pitch + row * box->dst.row_pitch;
  const size_t from_pitch = rows > 1 ? (size_t)box->src.row_pitch : row_bytes;
  const size_t to_pitch = rows > 1 ? (size_t)box->dst.row_pitch : row_bytes;
  return device->hip->hipMemcpy2DAsync((void *)(uintptr_t)to, to_pitch, (const void *)(uintptr_t)from, from_pitch,
                                       row_bytes, (size_t)rows, gm__hip_copy_kind(box->src.host, box->dst.host),
                                       stream);
}

static bool hip_rect_fits(const hip_side *side, const gm_rect *rect) {
  return side->row_pitch >= rect->row_bytes && side->row_pitch <= HIP_MOST_PITCH;
}

static hipError_t hip_rect_run(const gm__hip_device *device, hipStream_t stream, const hip_box *box) {
  const gm_rect *rect = box->rect;
  const uint64_t rows = hip_rect_fits(&box->src, rect) && hip_rect_fits(&box->dst, rect) ? rect->rows : 1;
  hipError_t code = hipSuccess;
  if (rect->row_bytes == 0 || rect->rows == 0) return code;
  for (uint64_t slice = 0; slice < rect->slices && code == hipSuccess; slice++) {
    for (uint64_t row = 0; row < rect->rows && code == hipSuccess; row += rows) {
      code = hip_rect_enqueue(device, stream, box, slice, row, rows);
    }
  }
  return code;
}

static gm_status hip_rect(gm__hip_device *device, void *stream, const hip_box *box, gm_backend_point *out,
                          gm_error *err) {
  gm__hip_job job;
  const gm_status status = gm__hip_begin(device, stream, &job, err);
  if (status != GM_OK) return status;
  return gm__hip_end(device, &job, hip_rect_run(device, job.stream, box), "hipMemcpy2DAsync", out, err);
}

gm_status gm__hip_rect_to_device(void *device, void *stream, const gm_memory *dst, const void *src, const gm_rect *rect,
                                 gm_backend_point *out, gm_error *err) {
  const hip_box box = {hip_rect_src(NULL, src, rect), hip_rect_dst(dst, NULL, rect), rect};
  return hip_rect(device, stream, &box, out, err);
}

gm_status gm__hip_rect_to_host(void *device, void *stream, const gm_memory *src, void *dst, const gm_rect *rect,
                               gm_backend_point *out, gm_error *err) {
  const hip_box box = {hip_rect_src(src, NULL, rect), hip_rect_dst(NULL, dst, rect), rect};
  return hip_rect(device, stream, &box, out, err);
}

gm_status gm__hip_rect_copy(void *device, void *stream, const gm_memory *dst, const gm_memory *src, const gm_rect *rect,
                            gm_backend_point *out, gm_error *err) {
  const hip_box box = {hip_rect_src(src, NULL, rect), hip_rect_dst(dst, NULL, rect), rect};
  return hip_rect(device, stream, &box, out, err);
}
