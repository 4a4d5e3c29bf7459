/* Between processes. The runtimes do it so: the flag of an IPC handle was 0 before 6.0, and a descriptor is imported
 * by its address before 7.1. */
#include <string.h>

#include "tests/simulated/hip/sim_hip_thread.h"

hipError_t hipMemGetAddressRange(hipDeviceptr_t *base, size_t *bytes, hipDeviceptr_t pointer) {
  CUdeviceptr first = 0;
  CUresult result = sim_hip_context();
  if (!result) result = cuMemGetAddressRange_v2(&first, bytes, (CUdeviceptr)(uintptr_t)pointer);
  if (!result) *base = (hipDeviceptr_t)(uintptr_t)first;
  return sim_hip_answer(result);
}

hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *pointer) {
  CUipcMemHandle made;
  CUresult result = sim_hip_context();
  if (!result) result = cuIpcGetMemHandle(&made, (CUdeviceptr)(uintptr_t)pointer);
  if (!result) memcpy(handle->reserved, made.reserved, sizeof handle->reserved);
  return sim_hip_answer(result);
}

hipError_t hipIpcOpenMemHandle(void **pointer, hipIpcMemHandle_t handle, unsigned int flags) {
  const unsigned wanted = SIM_HIP_VERSION >= 60000000;
  CUdeviceptr opened = 0;
  CUipcMemHandle same;
  memcpy(same.reserved, handle.reserved, sizeof same.reserved);
  CUresult result = flags == wanted ? sim_hip_context() : CUDA_ERROR_INVALID_VALUE;
  if (!result) result = cuIpcOpenMemHandle_v2(&opened, same, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  if (!result) *pointer = (void *)(uintptr_t)opened;
  return sim_hip_answer(result);
}

hipError_t hipIpcCloseMemHandle(void *pointer) {
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result : cuIpcCloseMemHandle((CUdeviceptr)(uintptr_t)pointer));
}

hipError_t hipMemExportToShareableHandle(void *shared, hipMemGenericAllocationHandle_t handle,
                                         hipMemAllocationHandleType type, unsigned long long flags) {
  const CUmemGenericAllocationHandle same = (uintptr_t)handle;
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result
                               : cuMemExportToShareableHandle(shared, same, (CUmemAllocationHandleType)type, flags));
}

hipError_t hipMemImportFromShareableHandle(hipMemGenericAllocationHandle_t *handle, void *shared,
                                           hipMemAllocationHandleType type) {
  CUmemGenericAllocationHandle made = 0;
  int fd = (int)(intptr_t)shared;
  if (SIM_HIP_VERSION < 70100000 && shared) memcpy(&fd, shared, sizeof fd);
  CUresult result = shared ? sim_hip_context() : CUDA_ERROR_INVALID_VALUE;
  if (!result) result = cuMemImportFromShareableHandle(&made, (void *)(intptr_t)fd, (CUmemAllocationHandleType)type);
  if (!result) *handle = (hipMemGenericAllocationHandle_t)(uintptr_t)made;
  return sim_hip_answer(result);
}
