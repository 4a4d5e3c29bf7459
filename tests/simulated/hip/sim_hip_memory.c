/* Memory: of the device, pinned, managed, and what is known of a pointer. */
#include "tests/simulated/hip/sim_hip_thread.h"

static CUdeviceptr memory_address(const void *pointer) { return (CUdeviceptr)(uintptr_t)pointer; }

hipError_t hipMemGetInfo(size_t *room, size_t *total) {
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result : cuMemGetInfo_v2(room, total));
}

hipError_t hipMalloc(void **pointer, size_t bytes) {
  CUdeviceptr address = 0;
  CUresult result = sim_hip_context();
  if (!result) result = cuMemAlloc_v2(&address, bytes);
  if (!result) *pointer = (void *)(uintptr_t)address;
  return sim_hip_answer(result);
}

hipError_t hipFree(void *pointer) {
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result : cuMemFree_v2(memory_address(pointer)));
}

hipError_t hipHostMalloc(void **pointer, size_t bytes, unsigned int flags) {
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result : cuMemHostAlloc(pointer, bytes, flags));
}

hipError_t hipHostFree(void *pointer) {
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result : cuMemFreeHost(pointer));
}

hipError_t hipHostGetDevicePointer(void **address, void *pointer, unsigned int flags) {
  CUdeviceptr found = 0;
  CUresult result = sim_hip_context();
  if (!result) result = cuMemHostGetDevicePointer_v2(&found, pointer, flags);
  if (!result) *address = (void *)(uintptr_t)found;
  return sim_hip_answer(result);
}

hipError_t hipMallocManaged(void **pointer, size_t bytes, unsigned int flags) {
  CUdeviceptr address = 0;
  CUresult result = sim_hip_context();
  if (!result) result = cuMemAllocManaged(&address, bytes, flags);
  if (!result) *pointer = (void *)(uintptr_t)address;
  return sim_hip_answer(result);
}

hipError_t hipMemPrefetchAsync(const void *pointer, size_t bytes, int device, hipStream_t stream) {
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result
                               : cuMemPrefetchAsync(memory_address(pointer), bytes, device, (CUstream)(void *)stream));
}

hipError_t hipMemAdvise(const void *pointer, size_t bytes, hipMemoryAdvise advice, int device) {
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result : cuMemAdvise(memory_address(pointer), bytes, (CUmem_advise)advice, device));
}

hipError_t hipHostRegister(void *pointer, size_t bytes, unsigned int flags) {
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result : cuMemHostRegister_v2(pointer, bytes, flags));
}

hipError_t hipHostUnregister(void *pointer) {
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result : cuMemHostUnregister(pointer));
}

/* Before 6.0 the kinds begin with host = 0, and the host address is that of the allocation. A pointer that is not known
 * is an error. */
static CUresult memory_describe(hipPointerAttribute_t *out, CUdeviceptr pointer) {
  const int old = SIM_HIP_VERSION < 60000000;
  unsigned kind = 0, managed = 0;
  CUdeviceptr start = 0;
  CUresult result = cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer);
  if (result == CUDA_ERROR_INVALID_VALUE && !old) {
    *out = (hipPointerAttribute_t){.device = -2};
    return CUDA_SUCCESS;
  }
  if (!result) result = cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, pointer);
  if (!result) result = cuPointerGetAttribute(&out->device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer);
  if (result) return result;
  cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer);
  out->isManaged = (managed & 0xff) != 0;
  out->type = (int)kind;
  if (out->isManaged) out->type = 3;
  if (old) out->type--;
  const bool host = kind == CU_MEMORYTYPE_HOST || out->isManaged;
  out->devicePointer = (void *)(uintptr_t)pointer;
  out->hostPointer = host ? (void *)(uintptr_t)(old ? start : pointer) : NULL;
  return CUDA_SUCCESS;
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t *out, const void *pointer) {
  CUresult result = sim_hip_context();
  if (!out) result = CUDA_ERROR_INVALID_VALUE;
  return sim_hip_answer(result ? result : memory_describe(out, memory_address(pointer)));
}
