/* Copies of rectangles and boxes. */
#include "tests/simulated/cuda/sim_call.h"
#include "tests/simulated/cuda/sim_context.h"
#include "tests/simulated/cuda/sim_copy.h"
#include "tests/simulated/cuda/sim_range.h"
#include "tests/simulated/cuda/sim_stream.h"

typedef struct rect_side {
  uint64_t at; /* of the first byte */
  uint64_t row, plane;
} rect_side;

typedef struct rect_op {
  sim_op op;
  rect_side to, from;
  uint64_t width, rows, planes;
} rect_op;

static CUresult rect_run(sim_op *op, sim_queue *queue) {
  const rect_op *rect = (rect_op *)op;
  sim_copy_slowly(rect->width * rect->rows * rect->planes);
  CUresult result = CUDA_SUCCESS;
  for (uint64_t z = 0; z < rect->planes && !result; z++) {
    for (uint64_t y = 0; y < rect->rows && !result; y++) {
      uint64_t to = rect->to.at + z * rect->to.plane + y * rect->to.row;
      uint64_t from = rect->from.at + z * rect->from.plane + y * rect->from.row;
      result = sim_range_copy(queue->device, to, from, rect->width);
    }
  }
  return result;
}

/* The side as addresses; arrays are not simulated. */
static CUresult rect_base(CUmemorytype type, const void *host, CUdeviceptr device, uint64_t *out) {
  if (type == CU_MEMORYTYPE_ARRAY) return CUDA_ERROR_NOT_SUPPORTED;
  if (type < CU_MEMORYTYPE_HOST || type > CU_MEMORYTYPE_UNIFIED) return CUDA_ERROR_INVALID_VALUE;
  *out = type == CU_MEMORYTYPE_HOST ? (uintptr_t)host : device;
  if (type == CU_MEMORYTYPE_DEVICE && !sim_range_find(device)) return CUDA_ERROR_INVALID_VALUE;
  return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool rect_side_ok(const rect_side *side, uint64_t width, uint64_t rows, uint64_t planes) {
  if ((rows > 1 || planes > 1) && side->row < width) return false;
  if (planes > 1 && side->plane < side->row * rows) return false;
  return sim_range_ok(side->at, (planes - 1) * side->plane + (rows - 1) * side->row + width);
}

static bool rect_is_pageable(const rect_side *side) {
  return !sim_range_is_device(side->at) && !sim_range_is_pinned(side->at, 1);
}

/* Takes what `like` says; pageable memory makes the call wait. */
static CUresult rect_add(const rect_op *like, CUstream stream, sim_wait wait) {
  if (!like->width || !like->rows || !like->planes) return CUDA_SUCCESS;
  if (!rect_side_ok(&like->to, like->width, like->rows, like->planes) ||
      !rect_side_ok(&like->from, like->width, like->rows, like->planes))
    return CUDA_ERROR_INVALID_VALUE;
  sim_queue *queue = NULL;
  CUresult result = sim_stream_queue(stream, &queue);
  if (result) return result;
  rect_op *rect = sim_op_create(sizeof *rect);
  if (!rect) return CUDA_ERROR_OUT_OF_MEMORY;
  sim_op op = rect->op;
  *rect = *like;
  rect->op = op;
  rect->op.run = rect_run;
  rect->op.link = sim_copy_link(queue->device, like->to.at, like->from.at, like->width * like->rows * like->planes);
  rect->op.link.entry.to = rect->op.link.entry.from = 0; /* rows with gaps are no range */
  bool ends = wait == SIM_WAIT || (!queue->capture && (rect_is_pageable(&like->to) || rect_is_pageable(&like->from)));
  result = sim_queue_add(queue, &rect->op);
  return result || !ends ? result : sim_queue_wait(queue);
}

static CUresult rect_copy_2d(const CUDA_MEMCPY2D *copy, CUstream stream, sim_wait wait) {
  if (!copy) return CUDA_ERROR_INVALID_VALUE;
  rect_op like = {.width = copy->WidthInBytes, .rows = copy->Height, .planes = 1};
  like.from.row = copy->srcPitch ? copy->srcPitch : copy->srcXInBytes + copy->WidthInBytes;
  like.to.row = copy->dstPitch ? copy->dstPitch : copy->dstXInBytes + copy->WidthInBytes;
  CUresult result = rect_base(copy->srcMemoryType, copy->srcHost, copy->srcDevice, &like.from.at);
  if (!result) result = rect_base(copy->dstMemoryType, copy->dstHost, copy->dstDevice, &like.to.at);
  if (result) return result;
  like.from.at += copy->srcY * like.from.row + copy->srcXInBytes;
  like.to.at += copy->dstY * like.to.row + copy->dstXInBytes;
  return rect_add(&like, stream, wait);
}

static CUresult rect_copy_3d(const CUDA_MEMCPY3D *copy, CUstream stream, sim_wait wait) {
  if (!copy || copy->reserved0 || copy->reserved1) return CUDA_ERROR_INVALID_VALUE;
  rect_op like = {.width = copy->WidthInBytes, .rows = copy->Height, .planes = copy->Depth};
  like.from.row = copy->srcPitch ? copy->srcPitch : copy->srcXInBytes + copy->WidthInBytes;
  like.to.row = copy->dstPitch ? copy->dstPitch : copy->dstXInBytes + copy->WidthInBytes;
  like.from.plane = like.from.row * (copy->srcHeight ? copy->srcHeight : copy->srcY + copy->Height);
  like.to.plane = like.to.row * (copy->dstHeight ? copy->dstHeight : copy->dstY + copy->Height);
  CUresult result = rect_base(copy->srcMemoryType, copy->srcHost, copy->srcDevice, &like.from.at);
  if (!result) result = rect_base(copy->dstMemoryType, copy->dstHost, copy->dstDevice, &like.to.at);
  if (result) return result;
  like.from.at += copy->srcZ * like.from.plane + copy->srcY * like.from.row + copy->srcXInBytes;
  like.to.at += copy->dstZ * like.to.plane + copy->dstY * like.to.row + copy->dstXInBytes;
  return rect_add(&like, stream, wait);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy) {
  CUresult result = sim_enter(sim_id_cuMemcpy2D_v2);
  if (result) return result;
  return sim_leave(rect_copy_2d(copy, NULL, SIM_WAIT));
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy) {
  CUresult result = sim_enter(sim_id_cuMemcpy2DUnaligned_v2);
  if (result) return result;
  return sim_leave(rect_copy_2d(copy, NULL, SIM_WAIT));
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream) {
  CUresult result = sim_enter(sim_id_cuMemcpy2DAsync_v2);
  if (result) return result;
  return sim_leave(rect_copy_2d(copy, stream, SIM_NO_WAIT));
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy) {
  CUresult result = sim_enter(sim_id_cuMemcpy3D_v2);
  if (result) return result;
  return sim_leave(rect_copy_3d(copy, NULL, SIM_WAIT));
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *copy, CUstream stream) {
  CUresult result = sim_enter(sim_id_cuMemcpy3DAsync_v2);
  if (result) return result;
  return sim_leave(rect_copy_3d(copy, stream, SIM_NO_WAIT));
}
