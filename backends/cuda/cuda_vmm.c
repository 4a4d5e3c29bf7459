#include "backends/cuda/cuda_vmm.h"

#include "backends/cuda/cuda_device.h"
#include "backends/shared/runtime/runtime_vmm.h"

/* Each entry makes the context current. Most of these calls need none, but the first call of a thread may. */

gm_status gm__cuda_vmm_reserve(void *device, uint64_t bytes, uint64_t align, uint64_t *out_address, gm_error *err) {
  gm__runtime_scope scope;
  CUdeviceptr address = 0;
  const gm_status status = gm__runtime_vmm_enter(device, &scope, err);
  if (status != GM_OK) return status;
  const CUresult code = gm__cuda_of(device)->cuMemAddressReserve(&address, (size_t)bytes, (size_t)align, 0, 0);
  gm__runtime_leave(device, &scope);
  if (code != CUDA_SUCCESS) return gm__runtime_fail(device, (int)code, "cuMemAddressReserve", err);
  if (!address) return gm__runtime_nonsense(device, "cuMemAddressReserve", "gave no address", err);
  *out_address = address;
  return GM_OK;
}

gm_status gm__cuda_vmm_unreserve(void *device, uint64_t address, uint64_t bytes, gm_close_mode mode, gm_error *err) {
  gm__runtime_scope scope;
  bool gone = false;
  if (mode == GM_CLOSE_ABANDON) return GM_OK;
  const gm_status status = gm__runtime_vmm_enter_release(device, &scope, &gone, err);
  if (status != GM_OK || gone) return status;
  const CUresult code = gm__cuda_of(device)->cuMemAddressFree(address, (size_t)bytes);
  gm__runtime_leave(device, &scope);
  return gm__runtime_released(device, (int)code, "cuMemAddressFree", err);
}

gm_status gm__cuda_vmm_map(void *device, uint64_t address, uint64_t bytes, uint64_t handle, uint64_t offset,
                           gm_error *err) {
  gm__runtime_scope scope;
  const gm_status status = gm__runtime_vmm_enter(device, &scope, err);
  if (status != GM_OK) return status;
  const CUresult code = gm__cuda_of(device)->cuMemMap(address, (size_t)bytes, (size_t)offset, handle, 0);
  gm__runtime_leave(device, &scope);
  return gm__runtime_answer(device, (int)code, "cuMemMap", err);
}

gm_status gm__cuda_vmm_unmap(void *device, uint64_t address, uint64_t bytes, gm_error *err) {
  gm__runtime_scope scope;
  bool gone = false;
  const gm_status status = gm__runtime_vmm_enter_release(device, &scope, &gone, err);
  if (status != GM_OK || gone) return status;
  const CUresult code = gm__cuda_of(device)->cuMemUnmap(address, (size_t)bytes);
  gm__runtime_leave(device, &scope);
  return gm__runtime_released(device, (int)code, "cuMemUnmap", err);
}

gm_status gm__cuda_vmm_open(gm__runtime_device *device, int ordinal, uint64_t address, uint64_t bytes, gm_error *err) {
  CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = ordinal;
  const CUresult code = gm__cuda_of(device)->cuMemSetAccess(address, (size_t)bytes, &access, 1);
  return gm__runtime_answer(device, (int)code, "cuMemSetAccess", err);
}
