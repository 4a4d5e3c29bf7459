#include "backends/hip/hip_share.h"

#include <string.h>

#include "backends/hip/hip_current.h"
#include "backends/hip/hip_info.h"
#include "backends/hip/hip_mem.h"
#include "backends/hip/hip_status.h"
#include "core/base/error.h"

/* As with CUDA: an IPC handle stands for HIP's whole allocation and is not opened by its exporter; a descriptor stands
 * for physical memory. Two things differ between versions: hipIpcMemLazyEnablePeerAccess was 0 once and is 1, and the
 * other value is refused; before 7.1 the import takes the address of the descriptor, later its number. */

_Static_assert(sizeof(hipIpcMemHandle_t) == GM_SHARE_IPC_BYTES, "room for HIP's handle");

static gm_status hip_share_check(const gm__hip_device *device, gm_share_kind kind, gm_error *err) {
  if (gm__hip_share_kinds(device->driver, &device->info) >> kind & 1) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "hip", "%s shares no memory with other processes by %s",
                  device->info.name, kind == GM_SHARE_IPC ? "IPC" : "descriptor");
}

static gm_status hip_share_enter(gm__hip_device *device, gm_share_kind kind, gm__hip_scope *out, gm_error *err) {
  const gm_status status = hip_share_check(device, kind, err);
  return status == GM_OK ? gm__hip_enter(device, out, err) : status;
}

static gm_status hip_share_ask(gm__hip_device *device, const gm_memory *memory, gm_shared *out, gm_error *err) {
  hipIpcMemHandle_t handle = {{0}};
  hipDeviceptr_t base = NULL;
  size_t whole = 0;
  void *pointer = (void *)(uintptr_t)memory->address;
  hipError_t code = device->hip->hipMemGetAddressRange(&base, &whole, pointer);
  if (code != hipSuccess) return gm__hip_device_fail(device, code, "hipMemGetAddressRange", err);
  const uint64_t first = (uintptr_t)base;
  if (memory->address < first) return gm__hip_nonsense(err, "hipMemGetAddressRange", "told a range elsewhere");
  code = device->hip->hipIpcGetMemHandle(&handle, base);
  if (code != hipSuccess) return gm__hip_device_fail(device, code, "hipIpcGetMemHandle", err);
  *out = (gm_shared){.struct_size = sizeof *out, .kind = GM_SHARE_IPC, .bytes = memory->bytes, .fd = -1};
  out->offset = memory->address - first;
  out->whole_bytes = whole;
  memcpy(out->ipc, handle.reserved, sizeof out->ipc);
  return GM_OK;
}

static gm_status hip_share_export_ipc(gm__hip_device *device, const gm_memory *memory, gm_shared *out, gm_error *err) {
  gm__hip_scope scope;
  if (memory->type != GM__HIP_DEVICE_MEMORY) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "hipIpcGetMemHandle", "only the device's own memory can be shared");
  }
  gm_status status = hip_share_enter(device, GM_SHARE_IPC, &scope, err);
  if (status != GM_OK) return status;
  status = hip_share_ask(device, memory, out, err);
  gm__hip_leave(&scope);
  return status;
}

gm_status gm__hip_share_export(void *device, const gm_memory *memory, gm_share_kind kind, gm_shared *out,
                               gm_error *err) {
  gm__hip_device *opened = device;
  if (kind == GM_SHARE_IPC) return hip_share_export_ipc(opened, memory, out, err);
  if (kind == GM_SHARE_FD) return gm__vmm_table_export(&opened->mapped, device, memory, out, err);
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "hip", "memory is shared by IPC or as a descriptor, not by kind %d",
                  (int)kind);
}

static gm_status hip_share_check_shared(const gm_shared *shared, gm_share_kind kind, gm_error *err) {
  const bool fits = shared->struct_size >= sizeof *shared && shared->kind == kind && shared->bytes > 0;
  if (fits && (kind != GM_SHARE_FD || shared->fd >= 0)) return GM_OK;
  return gm__bad_argument(err, "hip", "`shared` has struct_size %u, kind %d, %llu bytes and descriptor %d",
                          (unsigned)shared->struct_size, (int)shared->kind, (unsigned long long)shared->bytes,
                          (int)shared->fd);
}

static hipError_t hip_share_open_handle(const gm__hip_device *device, const gm_shared *shared, void **out) {
  const unsigned flags = device->driver->version >= GM__HIP_6;
  hipIpcMemHandle_t handle;
  memcpy(handle.reserved, shared->ipc, sizeof handle.reserved);
  const hipError_t code = device->hip->hipIpcOpenMemHandle(out, handle, flags);
  return code == hipErrorInvalidValue ? device->hip->hipIpcOpenMemHandle(out, handle, !flags) : code;
}

/* The range must lie in what was opened. */
static gm_status hip_share_open(gm__hip_device *device, const gm_shared *shared, uint64_t *out, gm_error *err) {
  void *opened = NULL;
  hipDeviceptr_t base = NULL;
  size_t whole = 0;
  hipError_t code = hip_share_open_handle(device, shared, &opened);
  if (code != hipSuccess) return gm__hip_device_fail(device, code, "hipIpcOpenMemHandle", err);
  if (!opened) return gm__hip_nonsense(err, "hipIpcOpenMemHandle", "gave no address");
  code = device->hip->hipMemGetAddressRange(&base, &whole, opened);
  if (code == hipSuccess && shared->offset < whole && shared->bytes <= whole - shared->offset) {
    *out = (uintptr_t)opened;
    return GM_OK;
  }
  device->hip->hipIpcCloseMemHandle(opened);
  if (code != hipSuccess) return gm__hip_device_fail(device, code, "hipMemGetAddressRange", err);
  return gm__bad_argument(err, "hipIpcOpenMemHandle", "`shared`: %llu bytes at %llu, of an allocation of %zu",
                          (unsigned long long)shared->bytes, (unsigned long long)shared->offset, whole);
}

gm_status gm__hip_share_import(void *device, const gm_shared *shared, gm_memory *out, gm_error *err) {
  gm__hip_device *opened = device;
  gm__hip_scope scope;
  uint64_t base = 0;
  if (shared->kind == GM_SHARE_FD) return gm__vmm_table_import(&opened->mapped, device, shared, out, err);
  gm_status status = hip_share_check_shared(shared, GM_SHARE_IPC, err);
  if (status == GM_OK) status = hip_share_enter(opened, GM_SHARE_IPC, &scope, err);
  if (status != GM_OK) return status;
  status = hip_share_open(opened, shared, &base, err);
  gm__hip_leave(&scope);
  if (status != GM_OK) return status;
  *out = (gm_memory){.handle = base,
                     .address = base + shared->offset,
                     .bytes = shared->bytes,
                     .type = GM__HIP_DEVICE_MEMORY,
                     .wrapped = true};
  return GM_OK;
}

gm_status gm__hip_share_close(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  gm__hip_device *opened = device;
  gm__hip_scope scope;
  bool gone = false;
  if (mode == GM_CLOSE_ABANDON) return GM_OK;
  gm_status status = gm__vmm_table_free(&opened->mapped, device, memory, &gone, err);
  if (gone) return status;
  status = hip_share_check(opened, GM_SHARE_IPC, err);
  if (status == GM_OK) status = gm__hip_enter_release(opened, &scope, &gone, err);
  if (status != GM_OK || gone) return status;
  const hipError_t code = opened->hip->hipIpcCloseMemHandle((void *)(uintptr_t)memory->handle);
  status = gm__hip_device_released(opened, code, "hipIpcCloseMemHandle", err);
  gm__hip_leave(&scope);
  return status;
}

gm_status gm__hip_share_export_vmm(void *device, uint64_t handle, uint64_t bytes, gm_shared *out, gm_error *err) {
  gm__hip_device *opened = device;
  gm__hip_scope scope;
  int fd = -1;
  gm_status status = hip_share_enter(opened, GM_SHARE_FD, &scope, err);
  if (status != GM_OK) return status;
  const hipError_t code = opened->hip->hipMemExportToShareableHandle(
      &fd, (hipMemGenericAllocationHandle_t)(uintptr_t)handle, hipMemHandleTypePosixFileDescriptor, 0);
  if (code != hipSuccess) status = gm__hip_device_fail(opened, code, "hipMemExportToShareableHandle", err);
  gm__hip_leave(&scope);
  if (status != GM_OK) return status;
  if (fd < 0) return gm__hip_nonsense(err, "hipMemExportToShareableHandle", "gave no file descriptor");
  *out = (gm_shared){.struct_size = sizeof *out, .kind = GM_SHARE_FD, .bytes = bytes, .whole_bytes = bytes, .fd = fd};
  return GM_OK;
}

gm_status gm__hip_share_import_vmm(void *device, const gm_shared *shared, uint64_t *out_handle, gm_error *err) {
  gm__hip_device *opened = device;
  gm__hip_scope scope;
  hipMemGenericAllocationHandle_t handle = NULL;
  int fd = shared->fd;
  gm_status status = hip_share_check_shared(shared, GM_SHARE_FD, err);
  if (status == GM_OK) status = hip_share_enter(opened, GM_SHARE_FD, &scope, err);
  if (status != GM_OK) return status;
  void *given = opened->driver->version >= GM__HIP_7_1 ? (void *)(uintptr_t)fd : (void *)&fd;
  const hipError_t code =
      opened->hip->hipMemImportFromShareableHandle(&handle, given, hipMemHandleTypePosixFileDescriptor);
  if (code != hipSuccess) status = gm__hip_device_fail(opened, code, "hipMemImportFromShareableHandle", err);
  gm__hip_leave(&scope);
  if (status != GM_OK) return status;
  if (!handle) return gm__hip_nonsense(err, "hipMemImportFromShareableHandle", "gave no handle");
  *out_handle = (uintptr_t)handle;
  return GM_OK;
}
