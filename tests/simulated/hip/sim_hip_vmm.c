/* Virtual memory, with two habits of AMD's runtime. One call unmaps one mapping. Memory that was mapped in a range is
 * given back, after its release, only when the range is. */
#include <pthread.h>

#include "tests/simulated/hip/sim_hip_thread.h"

enum { VMM_MOST = 4096 };

typedef struct vmm_use { /* of a handle in a range; stays after the unmapping */
  CUdeviceptr range, at;
  size_t bytes;
  CUmemGenericAllocationHandle handle;
  bool mapped, released;
} vmm_use;

typedef struct vmm_span {
  CUdeviceptr at;
  size_t bytes;
} vmm_span;

static pthread_mutex_t vmm_lock = PTHREAD_MUTEX_INITIALIZER;
static vmm_use vmm_uses[VMM_MOST];
static vmm_span vmm_ranges[VMM_MOST];
static size_t vmm_use_count, vmm_range_count;

static CUdeviceptr vmm_address(const void *pointer) { return (CUdeviceptr)(uintptr_t)pointer; }

static CUmemAllocationProp vmm_props(const hipMemAllocationProp *props) {
  CUmemAllocationProp same = {.type = (CUmemAllocationType)props->type};
  same.requestedHandleTypes = (CUmemAllocationHandleType)props->requestedHandleType;
  same.location.type = (CUmemLocationType)props->location.type;
  same.location.id = props->location.id;
  return same;
}

hipError_t hipMemGetAllocationGranularity(size_t *bytes, const hipMemAllocationProp *props,
                                          hipMemAllocationGranularity_flags what) {
  const CUmemAllocationProp same = vmm_props(props);
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result
                               : cuMemGetAllocationGranularity(bytes, &same, (CUmemAllocationGranularity_flags)what));
}

hipError_t hipMemAddressReserve(void **address, size_t bytes, size_t align, void *wish, unsigned long long flags) {
  CUdeviceptr at = 0;
  CUresult result = sim_hip_context();
  if (!result) result = cuMemAddressReserve(&at, bytes, align, vmm_address(wish), flags);
  if (result) return sim_hip_answer(result);
  pthread_mutex_lock(&vmm_lock);
  if (vmm_range_count < VMM_MOST) vmm_ranges[vmm_range_count++] = (vmm_span){at, bytes};
  pthread_mutex_unlock(&vmm_lock);
  *address = (void *)(uintptr_t)at;
  return hipSuccess;
}

static bool vmm_is_used(CUmemGenericAllocationHandle handle) {
  for (size_t i = 0; i < vmm_use_count; i++) {
    if (vmm_uses[i].handle == handle) return true;
  }
  return false;
}

/* The uses in a range are over; what was released in the meantime goes now. */
static void vmm_drop_range(CUdeviceptr at) {
  for (size_t i = 0; i < vmm_use_count;) {
    const vmm_use use = vmm_uses[i];
    if (use.range != at) {
      i++;
      continue;
    }
    vmm_uses[i] = vmm_uses[--vmm_use_count];
    if (use.released && !vmm_is_used(use.handle)) cuMemRelease(use.handle);
  }
  for (size_t i = 0; i < vmm_range_count; i++) {
    if (vmm_ranges[i].at == at) vmm_ranges[i--] = vmm_ranges[--vmm_range_count];
  }
}

hipError_t hipMemAddressFree(void *address, size_t bytes) {
  CUresult result = sim_hip_context();
  if (!result) result = cuMemAddressFree(vmm_address(address), bytes);
  if (result) return sim_hip_answer(result);
  pthread_mutex_lock(&vmm_lock);
  vmm_drop_range(vmm_address(address));
  pthread_mutex_unlock(&vmm_lock);
  return hipSuccess;
}

hipError_t hipMemCreate(hipMemGenericAllocationHandle_t *handle, size_t bytes, const hipMemAllocationProp *props,
                        unsigned long long flags) {
  const CUmemAllocationProp same = vmm_props(props);
  CUmemGenericAllocationHandle made = 0;
  CUresult result = sim_hip_context();
  if (!result) result = cuMemCreate(&made, bytes, &same, flags);
  if (!result) *handle = (hipMemGenericAllocationHandle_t)(uintptr_t)made;
  return sim_hip_answer(result);
}

hipError_t hipMemRelease(hipMemGenericAllocationHandle_t handle) {
  const CUmemGenericAllocationHandle released = (uintptr_t)handle;
  CUresult result = sim_hip_context();
  bool kept = false;
  if (result) return sim_hip_answer(result);
  pthread_mutex_lock(&vmm_lock);
  for (size_t i = 0; i < vmm_use_count; i++) {
    if (vmm_uses[i].handle == released) kept = vmm_uses[i].released = true;
  }
  if (!kept) result = cuMemRelease(released);
  pthread_mutex_unlock(&vmm_lock);
  return sim_hip_answer(result);
}

static CUdeviceptr vmm_range_of(CUdeviceptr at) {
  for (size_t i = 0; i < vmm_range_count; i++) {
    if (at >= vmm_ranges[i].at && at - vmm_ranges[i].at < vmm_ranges[i].bytes) return vmm_ranges[i].at;
  }
  return 0;
}

hipError_t hipMemMap(void *address, size_t bytes, size_t offset, hipMemGenericAllocationHandle_t handle,
                     unsigned long long flags) {
  const CUmemGenericAllocationHandle mapped = (uintptr_t)handle;
  const CUdeviceptr at = vmm_address(address);
  CUresult result = sim_hip_context();
  if (result) return sim_hip_answer(result);
  pthread_mutex_lock(&vmm_lock);
  if (vmm_use_count == VMM_MOST) result = CUDA_ERROR_OUT_OF_MEMORY;
  if (!result) result = cuMemMap(at, bytes, offset, mapped, flags);
  if (!result) {
    vmm_uses[vmm_use_count++] =
        (vmm_use){.range = vmm_range_of(at), .at = at, .bytes = bytes, .handle = mapped, .mapped = true};
  }
  pthread_mutex_unlock(&vmm_lock);
  return sim_hip_answer(result);
}

static vmm_use *vmm_mapping(CUdeviceptr at, size_t bytes) {
  for (size_t i = 0; i < vmm_use_count; i++) {
    vmm_use *use = &vmm_uses[i];
    if (use->mapped && use->at == at && use->bytes == bytes) return use;
  }
  return NULL;
}

hipError_t hipMemUnmap(void *address, size_t bytes) {
  CUresult result = sim_hip_context();
  if (result) return sim_hip_answer(result);
  pthread_mutex_lock(&vmm_lock);
  vmm_use *use = vmm_mapping(vmm_address(address), bytes);
  result = use ? cuMemUnmap(use->at, bytes) : CUDA_ERROR_INVALID_VALUE;
  if (!result) use->mapped = false;
  pthread_mutex_unlock(&vmm_lock);
  return sim_hip_answer(result);
}

hipError_t hipMemSetAccess(void *address, size_t bytes, const hipMemAccessDesc *access, size_t count) {
  CUmemAccessDesc same = {.flags = (CUmemAccess_flags)access->flags};
  CUresult result = count == 1 ? sim_hip_context() : CUDA_ERROR_INVALID_VALUE;
  same.location.type = (CUmemLocationType)access->location.type;
  same.location.id = access->location.id;
  return sim_hip_answer(result ? result : cuMemSetAccess(vmm_address(address), bytes, &same, 1));
}
