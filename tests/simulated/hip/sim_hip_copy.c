/* Copies and fills. */
#include "tests/simulated/hip/sim_hip_thread.h"

static CUdeviceptr copy_address(const void *pointer) { return (CUdeviceptr)(uintptr_t)pointer; }
static CUstream copy_stream(hipStream_t stream) { return (CUstream)(void *)stream; }

static CUresult copy_by_kind(void *dst, const void *src, size_t bytes, hipMemcpyKind kind, CUstream stream) {
  switch (kind) {
    case hipMemcpyHostToDevice: return cuMemcpyHtoDAsync_v2(copy_address(dst), src, bytes, stream);
    case hipMemcpyDeviceToHost: return cuMemcpyDtoHAsync_v2(dst, copy_address(src), bytes, stream);
    case hipMemcpyDeviceToDevice: return cuMemcpyDtoDAsync_v2(copy_address(dst), copy_address(src), bytes, stream);
    case hipMemcpyHostToHost:
    case hipMemcpyDefault: return cuMemcpyAsync(copy_address(dst), copy_address(src), bytes, stream);
  }
  return CUDA_ERROR_INVALID_VALUE;
}

hipError_t hipMemcpyAsync(void *dst, const void *src, size_t bytes, hipMemcpyKind kind, hipStream_t stream) {
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result : copy_by_kind(dst, src, bytes, kind, copy_stream(stream)));
}

hipError_t hipMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t row_bytes,
                            size_t rows, hipMemcpyKind kind, hipStream_t stream) {
  const bool from_host = kind == hipMemcpyHostToHost || kind == hipMemcpyHostToDevice;
  const bool to_host = kind == hipMemcpyHostToHost || kind == hipMemcpyDeviceToHost;
  const CUDA_MEMCPY2D copy = {.srcMemoryType = from_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                              .srcHost = src,
                              .srcDevice = copy_address(src),
                              .srcPitch = src_pitch,
                              .dstMemoryType = to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                              .dstHost = dst,
                              .dstDevice = copy_address(dst),
                              .dstPitch = dst_pitch,
                              .WidthInBytes = row_bytes,
                              .Height = rows};
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result : cuMemcpy2DAsync_v2(&copy, copy_stream(stream)));
}

hipError_t hipMemsetD8Async(hipDeviceptr_t dst, unsigned char value, size_t count, hipStream_t stream) {
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result : cuMemsetD8Async(copy_address(dst), value, count, copy_stream(stream)));
}

hipError_t hipMemsetD32Async(hipDeviceptr_t dst, int value, size_t count, hipStream_t stream) {
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result
                               : cuMemsetD32Async(copy_address(dst), (unsigned)value, count, copy_stream(stream)));
}
