/* cuDeviceGetAttribute. */
#include "tests/simulated/cuda/sim_call.h"
#include "tests/simulated/cuda/sim_device.h"
#include "tests/simulated/cuda/sim_identity.h"
#include "tests/simulated/cuda/sim_script.h"

static int attribute_of_group(CUdevice_attribute attribute, bool *known) {
  unsigned without = sim_script_now.without;
  bool vmm = !(without & SIM_VMM), pools = !(without & SIM_POOLS);
  *known = true;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS: return !(without & SIM_MANAGED);
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED: return !(without & SIM_HOSTREG);
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM: return !(without & SIM_HOSTREG);
    case CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED: return sim_script_now.read_only_register;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: return vmm;
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED: return vmm;
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED: return vmm;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: return pools;
    case CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES: return 0;
    case CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED: return !(without & SIM_IPC);
    default: *known = false; return 0;
  }
}

static int attribute_fixed(CUdevice_attribute attribute) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X: return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH: return 0x7fffffff;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: return 49152;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
    case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT: return 32;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: return 1000000;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: return 256;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: return 4 << 20;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return 8;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: return 2;
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED: return 1;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return 8;
    case CU_DEVICE_ATTRIBUTE_NUMA_ID:
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID: return -1;
    default: return 0;
  }
}

static int attribute_value(CUdevice_attribute attribute, int device) {
  bool known = false;
  int value = attribute_of_group(attribute, &known);
  if (known) return value;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_INTEGRATED: return sim_script_now.integrated;
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS: return sim_script_now.integrated;
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES: return sim_script_now.integrated;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT: return sim_script_now.hostile_granularity ? 0 : 512;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: return (int)sim_identity_bus(device);
    default: return attribute_fixed(attribute);
  }
}

CUresult cuDeviceGetAttribute(int *out, CUdevice_attribute attribute, CUdevice device) {
  CUresult result = sim_enter(sim_id_cuDeviceGetAttribute);
  if (result) return result;
  if (!out || (int)attribute < 1 || (int)attribute > 147) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  if (!sim_device_exists(device)) return sim_leave(CUDA_ERROR_INVALID_DEVICE);
  *out = attribute_value(attribute, device);
  return sim_leave(CUDA_SUCCESS);
}
