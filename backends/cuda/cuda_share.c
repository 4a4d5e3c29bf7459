#include "backends/cuda/cuda_share.h"

#include <string.h>

#include "backends/cuda/cuda_context.h"
#include "backends/cuda/cuda_info.h"
#include "backends/cuda/cuda_mem.h"
#include "backends/cuda/cuda_status.h"
#include "core/base/error.h"

/* Two ways: an IPC handle stands for the driver's whole allocation, so the place in it travels along; a descriptor
 * stands for physical memory, of which there is ordinary memory in core/base/vmm_memory.h. What arrives is another
 * process's word: it is checked against what the driver opened. */

_Static_assert(sizeof(CUipcMemHandle) == GM_SHARE_IPC_BYTES, "room for CUDA's handle");

static gm_status cuda_share_check(const gm__cuda_device *device, gm_error *err) {
  const uint32_t kinds = gm__cuda_share_kinds(device->driver, device->ordinal, &device->info);
  if (kinds >> GM_SHARE_IPC & 1) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "cuda", "%s cannot share memory between processes", device->info.name);
}

static gm_status cuda_share_enter(gm__cuda_device *device, gm__cuda_scope *out, gm_error *err) {
  const gm_status status = cuda_share_check(device, err);
  return status == GM_OK ? gm__cuda_enter(device, out, err) : status;
}

static gm_status cuda_share_export_ipc(gm__cuda_device *opened, const gm_memory *memory, gm_shared *out,
                                       gm_error *err) {
  gm__cuda_scope scope;
  CUipcMemHandle handle = {{0}};
  CUdeviceptr base = 0;
  size_t whole = 0;
  if (memory->type != GM__CUDA_DEVICE_MEMORY) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "cuIpcGetMemHandle", "only the device's own memory can be shared");
  }
  const gm_status status = cuda_share_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  CUresult code = opened->cu->cuMemGetAddressRange_v2(&base, &whole, memory->address);
  if (code == CUDA_SUCCESS) code = opened->cu->cuIpcGetMemHandle(&handle, memory->address);
  gm__cuda_leave(&scope);
  if (code != CUDA_SUCCESS) return gm__cuda_device_fail(opened, code, "cuIpcGetMemHandle", err);
  if (memory->address < base) return gm__cuda_nonsense(err, "cuMemGetAddressRange", "told a range elsewhere");
  *out = (gm_shared){.struct_size = sizeof *out, .kind = GM_SHARE_IPC, .bytes = memory->bytes, .fd = -1};
  out->offset = memory->address - base;
  out->whole_bytes = whole;
  memcpy(out->ipc, handle.reserved, sizeof out->ipc);
  return GM_OK;
}

gm_status gm__cuda_share_export(void *device, const gm_memory *memory, gm_share_kind kind, gm_shared *out,
                                gm_error *err) {
  gm__cuda_device *opened = device;
  if (kind == GM_SHARE_IPC) return cuda_share_export_ipc(opened, memory, out, err);
  if (kind == GM_SHARE_FD) return gm__vmm_table_export(&opened->mapped, device, memory, out, err);
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "cuda", "memory is shared by IPC or as a descriptor, not by kind %d",
                  (int)kind);
}

static gm_status cuda_share_check_shared(const gm_shared *shared, gm_share_kind kind, gm_error *err) {
  if (shared->struct_size < sizeof *shared || shared->kind != kind || shared->bytes == 0) {
    return gm__bad_argument(
        err, "cuda", "`shared` has struct_size %u, kind %d and %llu bytes; wanted are %zu, %d, more",
        (unsigned)shared->struct_size, (int)shared->kind, (unsigned long long)shared->bytes, sizeof *shared, (int)kind);
  }
  return GM_OK;
}

/* The range must lie in what was opened. */
static gm_status cuda_share_open(gm__cuda_device *device, const gm_shared *shared, CUdeviceptr *out, gm_error *err) {
  CUipcMemHandle handle;
  CUdeviceptr opened = 0, base = 0;
  size_t whole = 0;
  memcpy(handle.reserved, shared->ipc, sizeof handle.reserved);
  CUresult code = device->cu->cuIpcOpenMemHandle_v2(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  if (code != CUDA_SUCCESS) return gm__cuda_device_fail(device, code, "cuIpcOpenMemHandle", err);
  if (!opened) return gm__cuda_nonsense(err, "cuIpcOpenMemHandle", "gave no address");
  code = device->cu->cuMemGetAddressRange_v2(&base, &whole, opened);
  const bool inside = code == CUDA_SUCCESS && shared->offset < whole && shared->bytes <= whole - shared->offset;
  if (inside) {
    *out = opened;
    return GM_OK;
  }
  device->cu->cuIpcCloseMemHandle(opened);
  if (code != CUDA_SUCCESS) return gm__cuda_device_fail(device, code, "cuMemGetAddressRange", err);
  return gm__bad_argument(err, "cuIpcOpenMemHandle", "`shared`: %llu bytes at %llu, of an allocation of %zu",
                          (unsigned long long)shared->bytes, (unsigned long long)shared->offset, whole);
}

gm_status gm__cuda_share_import(void *device, const gm_shared *shared, gm_memory *out, gm_error *err) {
  gm__cuda_device *opened = device;
  gm__cuda_scope scope;
  CUdeviceptr base = 0;
  if (shared->kind == GM_SHARE_FD) return gm__vmm_table_import(&opened->mapped, device, shared, out, err);
  gm_status status = cuda_share_check_shared(shared, GM_SHARE_IPC, err);
  if (status == GM_OK) status = cuda_share_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  status = cuda_share_open(opened, shared, &base, err);
  gm__cuda_leave(&scope);
  if (status != GM_OK) return status;
  *out = (gm_memory){.handle = base,
                     .address = base + shared->offset,
                     .bytes = shared->bytes,
                     .type = GM__CUDA_DEVICE_MEMORY,
                     .wrapped = true};
  return GM_OK;
}

gm_status gm__cuda_share_close(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  gm__cuda_device *opened = device;
  gm__cuda_scope scope;
  bool gone = false;
  if (mode == GM_CLOSE_ABANDON) return GM_OK;
  gm_status status = gm__vmm_table_free(&opened->mapped, device, memory, &gone, err);
  if (gone) return status;
  status = cuda_share_check(opened, err);
  if (status == GM_OK) status = gm__cuda_enter_release(opened, &scope, &gone, err);
  if (status != GM_OK || gone) return status;
  const CUresult code = opened->cu->cuIpcCloseMemHandle(memory->handle);
  gm__cuda_leave(&scope);
  return gm__cuda_device_released(opened, code, "cuIpcCloseMemHandle", err);
}

static gm_status cuda_share_check_vmm(const gm__cuda_device *device, gm_error *err) {
  const gm__cuda_syms *cu = device->cu;
  if (device->info.capabilities & GM_CAP_VMM && cu->cuMemExportToShareableHandle &&
      cu->cuMemImportFromShareableHandle) {
    return GM_OK;
  }
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "cuda", "%s cannot share virtual memory", device->info.name);
}

gm_status gm__cuda_share_export_vmm(void *device, uint64_t handle, uint64_t bytes, gm_shared *out, gm_error *err) {
  gm__cuda_device *opened = device;
  gm__cuda_scope scope;
  int fd = -1;
  gm_status status = cuda_share_check_vmm(opened, err);
  if (status == GM_OK) status = cuda_share_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  const CUresult code =
      opened->cu->cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  gm__cuda_leave(&scope);
  if (code != CUDA_SUCCESS) return gm__cuda_device_fail(opened, code, "cuMemExportToShareableHandle", err);
  if (fd < 0) return gm__cuda_nonsense(err, "cuMemExportToShareableHandle", "gave no file descriptor");
  *out = (gm_shared){.struct_size = sizeof *out, .kind = GM_SHARE_FD, .bytes = bytes, .whole_bytes = bytes, .fd = fd};
  return GM_OK;
}

gm_status gm__cuda_share_import_vmm(void *device, const gm_shared *shared, uint64_t *out_handle, gm_error *err) {
  gm__cuda_device *opened = device;
  gm__cuda_scope scope;
  CUmemGenericAllocationHandle handle = 0;
  gm_status status = cuda_share_check_shared(shared, GM_SHARE_FD, err);
  if (status == GM_OK && shared->fd < 0) status = gm__bad_argument(err, "cuda", "`fd` of `shared` is negative");
  if (status == GM_OK) status = cuda_share_check_vmm(opened, err);
  if (status == GM_OK) status = cuda_share_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  const CUresult code = opened->cu->cuMemImportFromShareableHandle(&handle, (void *)(uintptr_t)shared->fd,
                                                                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  gm__cuda_leave(&scope);
  if (code != CUDA_SUCCESS) return gm__cuda_device_fail(opened, code, "cuMemImportFromShareableHandle", err);
  if (!handle) return gm__cuda_nonsense(err, "cuMemImportFromShareableHandle", "gave no handle");
  *out_handle = handle;
  return GM_OK;
}
