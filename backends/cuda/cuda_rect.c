#include "backends/cuda/cuda_rect.h"

/* CUDA's boxes are narrower than gm's: a slice is a whole number of rows, a row is not longer than its pitch, and a
 * pitch is at most what the driver allows (2^31 - 1 and less). What does not fit is cut: into slices, or into rows,
 * each a box of one row, which needs no pitch. */

enum { CUDA_MOST_PITCH = 1 << 30 };

typedef struct cuda_side { /* of the box in one memory */
  CUmemorytype kind;
  uint64_t at; /* address of the first byte */
  uint64_t row_pitch, slice_pitch;
} cuda_side;

typedef struct cuda_box {
  cuda_side src, dst;
  uint64_t row_bytes, rows, slices;
} cuda_box;

static cuda_side cuda_rect_side(CUmemorytype kind, uint64_t at, uint64_t row_pitch, uint64_t slice_pitch,
                                const gm_rect *rect) {
  cuda_side side = {.kind = kind, .at = at, .row_pitch = row_pitch, .slice_pitch = slice_pitch};
  if (side.row_pitch == 0) side.row_pitch = rect->row_bytes;
  if (side.slice_pitch == 0) side.slice_pitch = side.row_pitch * rect->rows;
  if (rect->rows == 1) side.row_pitch = rect->row_bytes; /* there is no second row: the pitch may be anything */
  return side;
}

/* gm's page-locked and managed memory is given as the host's. */
static cuda_side cuda_rect_memory(const gm_memory *memory, uint64_t offset, uint64_t row_pitch, uint64_t slice_pitch,
                                  const gm_rect *rect) {
  const CUmemorytype kind = memory->host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  const uint64_t base = memory->host ? (uint64_t)(uintptr_t)memory->host : memory->address;
  return cuda_rect_side(kind, base + offset, row_pitch, slice_pitch, rect);
}

static CUresult cuda_rect_row(const gm__cuda_device *device, CUstream stream, const cuda_box *box) {
  const gm__cuda_syms *cu = device->cu;
  const bool from_host = box->src.kind == CU_MEMORYTYPE_HOST, to_host = box->dst.kind == CU_MEMORYTYPE_HOST;
  const CUdeviceptr src = box->src.at, dst = box->dst.at;
  const size_t bytes = (size_t)box->row_bytes;
  if (from_host && to_host) return cu->cuMemcpyAsync(dst, src, bytes, stream);
  if (from_host) return cu->cuMemcpyHtoDAsync_v2(dst, (const void *)(uintptr_t)src, bytes, stream);
  if (to_host) return cu->cuMemcpyDtoHAsync_v2((void *)(uintptr_t)dst, src, bytes, stream);
  return cu->cuMemcpyDtoDAsync_v2(dst, src, bytes, stream);
}

static CUresult cuda_rect_enqueue(const gm__cuda_device *device, CUstream stream, const cuda_box *box, uint64_t rows,
                                  uint64_t slices) {
  if (rows == 1 && slices == 1) return cuda_rect_row(device, stream, box);
  const uint64_t src_height = slices > 1 ? box->src.slice_pitch / box->src.row_pitch : rows;
  const uint64_t dst_height = slices > 1 ? box->dst.slice_pitch / box->dst.row_pitch : rows;
  CUDA_MEMCPY3D copy = {.srcMemoryType = box->src.kind,
                        .srcHost = (const void *)(uintptr_t)box->src.at,
                        .srcDevice = box->src.at,
                        .srcPitch = (size_t)box->src.row_pitch,
                        .srcHeight = (size_t)src_height,
                        .dstMemoryType = box->dst.kind,
                        .dstHost = (void *)(uintptr_t)box->dst.at,
                        .dstDevice = box->dst.at,
                        .dstPitch = (size_t)box->dst.row_pitch,
                        .dstHeight = (size_t)dst_height,
                        .WidthInBytes = (size_t)box->row_bytes,
                        .Height = (size_t)rows,
                        .Depth = (size_t)slices};
  return device->cu->cuMemcpy3DAsync_v2(&copy, stream);
}

static bool cuda_rect_rows_fit(const cuda_side *side, const cuda_box *box) {
  return side->row_pitch >= box->row_bytes && side->row_pitch <= CUDA_MOST_PITCH;
}

static bool cuda_rect_slices_fit(const cuda_side *side, const cuda_box *box) {
  return side->slice_pitch % side->row_pitch == 0 && side->slice_pitch / side->row_pitch >= box->rows;
}

static CUresult cuda_rect_run(const gm__cuda_device *device, CUstream stream, const cuda_box *box) {
  const bool rows_fit = box->rows == 1 || (cuda_rect_rows_fit(&box->src, box) && cuda_rect_rows_fit(&box->dst, box));
  const bool slices_fit = rows_fit && cuda_rect_rows_fit(&box->src, box) && cuda_rect_rows_fit(&box->dst, box) &&
                          cuda_rect_slices_fit(&box->src, box) && cuda_rect_slices_fit(&box->dst, box);
  const uint64_t rows = rows_fit ? box->rows : 1, slices = slices_fit ? box->slices : 1;
  CUresult code = CUDA_SUCCESS;
  for (uint64_t slice = 0; slice < box->slices && code == CUDA_SUCCESS; slice += slices) {
    for (uint64_t row = 0; row < box->rows && code == CUDA_SUCCESS; row += rows) {
      cuda_box part = *box;
      part.src.at += slice * box->src.slice_pitch + row * box->src.row_pitch;
      part.dst.at += slice * box->dst.slice_pitch + row * box->dst.row_pitch;
      code = cuda_rect_enqueue(device, stream, &part, rows, slices);
    }
  }
  return code;
}

static gm_status cuda_rect(gm__cuda_device *device, void *stream, cuda_box *box, const gm_rect *rect,
                           gm_backend_point *out, gm_error *err) {
  gm__cuda_job job;
  const gm_status status = gm__cuda_begin(device, stream, &job, err);
  if (status != GM_OK) return status;
  box->row_bytes = rect->row_bytes;
  box->rows = rect->rows;
  box->slices = rect->slices;
  const bool empty = rect->row_bytes == 0 || rect->rows == 0 || rect->slices == 0;
  const CUresult code = empty ? CUDA_SUCCESS : cuda_rect_run(device, job.stream, box);
  return gm__cuda_end(device, &job, code, "cuMemcpy3DAsync", out, err);
}

gm_status gm__cuda_rect_to_device(void *device, void *stream, const gm_memory *dst, const void *src,
                                  const gm_rect *rect, gm_backend_point *out, gm_error *err) {
  const uint64_t from = (uint64_t)(uintptr_t)src + rect->src_offset;
  cuda_box box = {.src = cuda_rect_side(CU_MEMORYTYPE_HOST, from, rect->src_row_pitch, rect->src_slice_pitch, rect),
                  .dst = cuda_rect_memory(dst, rect->dst_offset, rect->dst_row_pitch, rect->dst_slice_pitch, rect)};
  return cuda_rect(device, stream, &box, rect, out, err);
}

gm_status gm__cuda_rect_to_host(void *device, void *stream, const gm_memory *src, void *dst, const gm_rect *rect,
                                gm_backend_point *out, gm_error *err) {
  const uint64_t to = (uint64_t)(uintptr_t)dst + rect->dst_offset;
  cuda_box box = {.src = cuda_rect_memory(src, rect->src_offset, rect->src_row_pitch, rect->src_slice_pitch, rect),
                  .dst = cuda_rect_side(CU_MEMORYTYPE_HOST, to, rect->dst_row_pitch, rect->dst_slice_pitch, rect)};
  return cuda_rect(device, stream, &box, rect, out, err);
}

gm_status gm__cuda_rect_copy(void *device, void *stream, const gm_memory *dst, const gm_memory *src,
                             const gm_rect *rect, gm_backend_point *out, gm_error *err) {
  cuda_box box = {.src = cuda_rect_memory(src, rect->src_offset, rect->src_row_pitch, rect->src_slice_pitch, rect),
                  .dst = cuda_rect_memory(dst, rect->dst_offset, rect->dst_row_pitch, rect->dst_slice_pitch, rect)};
  return cuda_rect(device, stream, &box, rect, out, err);
}
