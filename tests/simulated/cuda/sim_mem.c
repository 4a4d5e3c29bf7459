/* cuMemAlloc and cuMemFree. */
#include "tests/simulated/cuda/sim_call.h"
#include "tests/simulated/cuda/sim_context.h"
#include "tests/simulated/cuda/sim_pool.h"
#include "tests/simulated/cuda/sim_queue.h"
#include "tests/simulated/cuda/sim_range.h"
#include "tests/simulated/cuda/sim_shared.h"

static CUresult mem_alloc(CUdeviceptr *out, size_t bytes) {
  if (!out || !bytes) return CUDA_ERROR_INVALID_VALUE;
  if (sim_script_now.hostile_null) return *out = 0, CUDA_SUCCESS;
  CUcontext context = sim_context_current();
  sim_range *range = NULL;
  CUresult result = sim_range_create(SIM_DEVICE, bytes, context->device, context, &range);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    sim_pool_synchronized(context->device);
    result = sim_range_create(SIM_DEVICE, bytes, context->device, context, &range);
  }
  if (!result) *out = range->at;
  return result;
}

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes) {
  CUresult result = sim_enter(sim_id_cuMemAlloc_v2);
  if (result) return result;
  return sim_leave(mem_alloc(out, bytes));
}

static CUresult mem_alloc_pitch(CUdeviceptr *out, size_t *pitch_out, size_t width, size_t rows, unsigned element) {
  if (!pitch_out || !width || !rows || (element != 4 && element != 8 && element != 16)) return CUDA_ERROR_INVALID_VALUE;
  if (width > SIZE_MAX - 511) return CUDA_ERROR_OUT_OF_MEMORY;
  size_t pitch = (width + 511) / 512 * 512;
  if (rows > SIZE_MAX / pitch) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = mem_alloc(out, pitch * rows);
  if (!result) *pitch_out = pitch;
  return result;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch_out, size_t width, size_t rows, unsigned element) {
  CUresult result = sim_enter(sim_id_cuMemAllocPitch_v2);
  if (result) return result;
  return sim_leave(mem_alloc_pitch(out, pitch_out, width, rows, element));
}

/* Waits for the device as the real driver mostly does, unless the script says otherwise. */
static CUresult mem_free(CUdeviceptr address) {
  if (!address) return CUDA_SUCCESS;
  sim_range *range = sim_range_find(address);
  if (!range || range->at != address || range->freed) return CUDA_ERROR_INVALID_VALUE;
  if (range->kind != SIM_DEVICE && range->kind != SIM_POOLED && range->kind != SIM_SHARED)
    return CUDA_ERROR_INVALID_VALUE;
  uint64_t id = range->id;
  CUresult result = sim_script_now.free_does_not_wait ? CUDA_SUCCESS : sim_queue_wait_device(range->device);
  range = sim_range_find(address); /* the wait lets other threads in */
  if (!range || range->id != id || range->freed) return CUDA_ERROR_INVALID_VALUE;
  if (result) return result;
  if (range->kind == SIM_POOLED) return sim_pool_give_back(range);
  if (range->kind == SIM_SHARED) return sim_shared_destroy(range);
  sim_range_destroy(range);
  return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  CUresult result = sim_enter(sim_id_cuMemFree_v2);
  if (result) return result;
  return sim_leave(mem_free(address));
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base_out, size_t *bytes_out, CUdeviceptr address) {
  CUresult result = sim_enter(sim_id_cuMemGetAddressRange_v2);
  if (result) return result;
  const sim_range *range = sim_range_find(address);
  if (!range || range->freed) return sim_leave(CUDA_ERROR_NOT_FOUND);
  if (base_out) *base_out = range->at;
  if (bytes_out) *bytes_out = range->bytes;
  return sim_leave(CUDA_SUCCESS);
}
