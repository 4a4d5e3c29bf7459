/* The driver entries (cu*) that allocators ask for: virtual memory over the fake device, the rest says "done". */
#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "bench/peers/fake/fake_device.h"

#define FAKE_GRANULARITY ((size_t)2 << 20)

/* A handle is its own size in pages of 4 KiB, with a number above it to be unlike others. */
static _Atomic uint64_t fake_handles = 1;
static const uint64_t fake_size_mask = (UINT64_C(1) << 40) - 1;

CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *properties,
                     unsigned long long flags) {
  (void)properties, (void)flags;
  if (fake_device_take(bytes) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = fake_handles++ << 40 | bytes >> 12;
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  fake_device_give((handle & fake_size_mask) << 12);
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *out, size_t bytes, size_t align, CUdeviceptr wish, unsigned long long flags) {
  (void)align, (void)wish, (void)flags;
  *out = fake_device_reserve(bytes);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  (void)bytes;
  return fake_device_unreserve(address) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags which) {
  (void)properties, (void)which;
  *out = FAKE_GRANULARITY;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *out, int ordinal) {
  *out = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *out) { return cuDeviceGet(out, 0); }

CUresult cuDeviceGetAttribute(int *out, CUdevice_attribute attribute, CUdevice device) {
  (void)attribute, (void)device;
  *out = 1;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *out_flags, int *out_active) {
  (void)device;
  *out_flags = 0;
  *out_active = 1;
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *out) {
  *out = 13000;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **out) {
  (void)error;
  *out = "fake driver";
  return CUDA_SUCCESS;
}

static CUresult fake_done(void) { return CUDA_SUCCESS; }

/* The answer of cudaGetDriverEntryPoint: an entry of this file, or one that does nothing. */
void *fake_driver_entry(const char *name) {
  static const struct {
    const char *name;
    void *entry;
  } entries[] = {{"cuMemCreate", (void *)cuMemCreate},
                 {"cuMemRelease", (void *)cuMemRelease},
                 {"cuMemAddressReserve", (void *)cuMemAddressReserve},
                 {"cuMemAddressFree", (void *)cuMemAddressFree},
                 {"cuMemGetAllocationGranularity", (void *)cuMemGetAllocationGranularity},
                 {"cuDeviceGet", (void *)cuDeviceGet},
                 {"cuCtxGetDevice", (void *)cuCtxGetDevice},
                 {"cuDeviceGetAttribute", (void *)cuDeviceGetAttribute},
                 {"cuDevicePrimaryCtxGetState", (void *)cuDevicePrimaryCtxGetState},
                 {"cuDriverGetVersion", (void *)cuDriverGetVersion},
                 {"cuGetErrorString", (void *)cuGetErrorString}};
  for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
    if (strcmp(name, entries[i].name) == 0) return entries[i].entry;
  }
  return (void *)fake_done;
}
