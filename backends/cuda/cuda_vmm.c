#include "backends/cuda/cuda_vmm.h"

#include "backends/cuda/cuda_context.h"
#include "backends/cuda/cuda_mem.h"
#include "backends/cuda/cuda_status.h"
#include "backends/cuda/cuda_stream.h"
#include "core/base/error.h"

/* The entries return CUDA's code through one place, cuda_vmm_call, which makes the context current: most of them need
 * none, but a first call of a thread may. */

static CUmemAllocationProp cuda_vmm_props(const gm__cuda_device *device, const gm_vmm_props *props) {
  CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
  wanted.requestedHandleTypes = props->shareable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  wanted.location.id = device->ordinal;
  return wanted;
}

static gm_status cuda_vmm_check(const gm__cuda_device *device, gm_error *err) {
  if (device->info.capabilities & GM_CAP_VMM) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "cuda", "%s has no virtual memory management that works",
                  device->info.name);
}

static gm_status cuda_vmm_check_props(const gm__cuda_device *device, const gm_vmm_props *props, gm_error *err) {
  const gm_status status = cuda_vmm_check(device, err);
  if (status != GM_OK || props->type == GM__CUDA_DEVICE_MEMORY) return status;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "cuda", "virtual memory is of type 0, the device's, not of type %u",
                  (unsigned)props->type);
}

static gm_status cuda_vmm_granule(gm__cuda_device *device, const CUmemAllocationProp *wanted, size_t *out,
                                  gm_error *err) {
  size_t granule = 0;
  const CUresult code = device->cu->cuMemGetAllocationGranularity(&granule, wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  if (code != CUDA_SUCCESS) return gm__cuda_device_fail(device, code, "cuMemGetAllocationGranularity", err);
  if (granule == 0 || (granule & (granule - 1))) {
    return gm__fail(err, GM_ERR_DRIVER, 0, "cuMemGetAllocationGranularity",
                    "the CUDA driver says that the granularity is %zu, which is no power of two", granule);
  }
  *out = granule;
  return GM_OK;
}

gm_status gm__cuda_vmm_granularity(void *device, const gm_vmm_props *props, uint64_t *out, gm_error *err) {
  gm__cuda_device *opened = device;
  gm__cuda_scope scope;
  size_t granule = 0;
  gm_status status = cuda_vmm_check_props(opened, props, err);
  if (status == GM_OK) status = gm__cuda_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  const CUmemAllocationProp wanted = cuda_vmm_props(opened, props);
  status = cuda_vmm_granule(opened, &wanted, &granule, err);
  gm__cuda_leave(&scope);
  if (status == GM_OK) *out = granule;
  return status;
}

/* One call of the group, with what any of them may need. */
typedef struct cuda_vmm_call {
  enum { CUDA_RESERVE, CUDA_UNRESERVE, CUDA_CREATE, CUDA_DESTROY, CUDA_MAP, CUDA_UNMAP, CUDA_ACCESS } what;
  uint64_t address, bytes, align, handle, offset;
  const CUmemAllocationProp *wanted;
} cuda_vmm_call;

static const char *const cuda_vmm_ops[] = {"cuMemAddressReserve", "cuMemAddressFree", "cuMemCreate",
                                           "cuMemRelease",        "cuMemMap",         "cuMemUnmap",
                                           "cuMemSetAccess"};

static CUresult cuda_vmm_run(const gm__cuda_device *device, cuda_vmm_call *call) {
  const gm__cuda_syms *cu = device->cu;
  const size_t bytes = (size_t)call->bytes;
  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle handle = 0;
  CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUresult code = CUDA_ERROR_NOT_SUPPORTED;
  switch (call->what) {
    case CUDA_RESERVE:
      code = cu->cuMemAddressReserve(&address, bytes, (size_t)call->align, 0, 0);
      call->address = address;
      break;
    case CUDA_UNRESERVE: return cu->cuMemAddressFree(call->address, bytes);
    case CUDA_CREATE:
      code = cu->cuMemCreate(&handle, bytes, call->wanted, 0);
      call->handle = handle;
      break;
    case CUDA_DESTROY: return cu->cuMemRelease(call->handle);
    case CUDA_MAP: return cu->cuMemMap(call->address, bytes, (size_t)call->offset, call->handle, 0);
    case CUDA_UNMAP: return cu->cuMemUnmap(call->address, bytes);
    case CUDA_ACCESS:
      access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
      access.location.id = device->ordinal;
      return cu->cuMemSetAccess(call->address, bytes, &access, 1);
  }
  return code;
}

static gm_status cuda_vmm_do(gm__cuda_device *device, cuda_vmm_call *call, gm_error *err) {
  gm__cuda_scope scope;
  const char *op = cuda_vmm_ops[call->what];
  gm_status status = cuda_vmm_check(device, err);
  if (status == GM_OK) status = gm__cuda_enter(device, &scope, err);
  if (status != GM_OK) return status;
  if (call->what == CUDA_CREATE) status = gm__cuda_capture_check(device, err);
  const CUresult code = status == GM_OK ? cuda_vmm_run(device, call) : CUDA_SUCCESS;
  gm__cuda_leave(&scope);
  if (status != GM_OK) return status;
  return code == CUDA_SUCCESS ? GM_OK : gm__cuda_device_fail(device, code, op, err);
}

/* The same for giving back. */
static gm_status cuda_vmm_undo(gm__cuda_device *device, cuda_vmm_call *call, gm_error *err) {
  gm__cuda_scope scope;
  bool gone = false;
  gm_status status = cuda_vmm_check(device, err);
  if (status == GM_OK) status = gm__cuda_enter_release(device, &scope, &gone, err);
  if (status != GM_OK || gone) return status;
  const CUresult code = cuda_vmm_run(device, call);
  gm__cuda_leave(&scope);
  return gm__cuda_device_released(device, code, cuda_vmm_ops[call->what], err);
}

gm_status gm__cuda_vmm_reserve(void *device, uint64_t bytes, uint64_t align, uint64_t *out_address, gm_error *err) {
  cuda_vmm_call call = {.what = CUDA_RESERVE, .bytes = bytes, .align = align};
  const gm_status status = cuda_vmm_do(device, &call, err);
  if (status != GM_OK) return status;
  if (!call.address) return gm__cuda_nonsense(err, "cuMemAddressReserve", "gave no address");
  *out_address = call.address;
  return GM_OK;
}

gm_status gm__cuda_vmm_unreserve(void *device, uint64_t address, uint64_t bytes, gm_close_mode mode, gm_error *err) {
  cuda_vmm_call call = {.what = CUDA_UNRESERVE, .address = address, .bytes = bytes};
  return mode == GM_CLOSE_ABANDON ? GM_OK : cuda_vmm_undo(device, &call, err);
}

gm_status gm__cuda_vmm_create(void *device, const gm_vmm_props *props, uint64_t bytes, uint64_t *out_handle,
                              gm_error *err) {
  gm_status status = cuda_vmm_check_props(device, props, err);
  if (status != GM_OK) return status;
  const CUmemAllocationProp wanted = cuda_vmm_props(device, props);
  cuda_vmm_call call = {.what = CUDA_CREATE, .bytes = bytes, .wanted = &wanted};
  status = cuda_vmm_do(device, &call, err);
  if (status != GM_OK) return status;
  if (!call.handle) return gm__cuda_nonsense(err, "cuMemCreate", "gave no handle");
  *out_handle = call.handle;
  return GM_OK;
}

gm_status gm__cuda_vmm_destroy(void *device, uint64_t handle, uint64_t bytes, gm_close_mode mode, gm_error *err) {
  cuda_vmm_call call = {.what = CUDA_DESTROY, .handle = handle, .bytes = bytes};
  return mode == GM_CLOSE_ABANDON ? GM_OK : cuda_vmm_undo(device, &call, err);
}

gm_status gm__cuda_vmm_map(void *device, uint64_t address, uint64_t bytes, uint64_t handle, uint64_t offset,
                           gm_error *err) {
  cuda_vmm_call call = {.what = CUDA_MAP, .address = address, .bytes = bytes, .handle = handle, .offset = offset};
  return cuda_vmm_do(device, &call, err);
}

gm_status gm__cuda_vmm_unmap(void *device, uint64_t address, uint64_t bytes, gm_error *err) {
  cuda_vmm_call call = {.what = CUDA_UNMAP, .address = address, .bytes = bytes};
  return cuda_vmm_undo(device, &call, err);
}

gm_status gm__cuda_vmm_access(void *device, uint64_t address, uint64_t bytes, gm_error *err) {
  cuda_vmm_call call = {.what = CUDA_ACCESS, .address = address, .bytes = bytes};
  return cuda_vmm_do(device, &call, err);
}
