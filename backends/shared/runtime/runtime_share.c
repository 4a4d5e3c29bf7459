/* Between processes. The entries of the seam, group 18. */
#include <limits.h>

#include "backends/shared/pointer_memory.h"
#include "backends/shared/runtime/runtime.h"
#include "backends/shared/runtime/runtime_entries.h"
#include "core/base/error.h"

/* There are two ways. An IPC handle stands for the driver's whole allocation, so the place in it travels along. A
 * descriptor stands for physical memory; backends/shared/vmm_memory.h makes ordinary memory of it. The other process
 * may send anything, so gm checks it against what the driver opened. */

static gm_status share_can(const gm__runtime_device *device, gm_share_kind kind, gm_error *err) {
  if (device->api->share_kinds(device->driver, device->ordinal, &device->info) >> kind & 1) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, device->api->name, "%s shares no memory with other processes by %s",
                  device->info.name, kind == GM_SHARE_IPC ? "IPC" : "descriptor");
}

static gm_status share_enter(gm__runtime_device *device, gm_share_kind kind, gm__runtime_scope *out, gm_error *err) {
  const gm_status status = share_can(device, kind, err);
  return status == GM_OK ? gm__runtime_enter(device, out, err) : status;
}

static gm_status share_ask(gm__runtime_device *device, const gm_memory *memory, gm_shared *out, gm_error *err) {
  const gm__runtime *api = device->api;
  gm_shared shared = {.struct_size = sizeof shared, .kind = GM_SHARE_IPC, .bytes = memory->bytes, .fd = -1};
  gm__runtime_word base = 0;
  size_t whole = 0;
  int code = api->address_range(device, memory->address, &base, &whole);
  if (code != GM__RUNTIME_SUCCESS) return gm__runtime_fail(device, code, api->address_range_op, err);
  if (memory->address < base) {
    return gm__runtime_nonsense(device, api->address_range_op, "told a range elsewhere", err);
  }
  shared.offset = memory->address - base;
  shared.whole_bytes = whole;
  code = api->ipc_get(device, base, shared.ipc);
  if (code != GM__RUNTIME_SUCCESS) return gm__runtime_fail(device, code, api->ipc_get_op, err);
  *out = shared;
  return GM_OK;
}

static gm_status share_export_ipc(gm__runtime_device *device, const gm_memory *memory, gm_shared *out, gm_error *err) {
  gm__runtime_scope scope;
  if (memory->type != GM__POINTER_DEVICE) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, device->api->ipc_get_op, "only the device's own memory can be shared");
  }
  gm_status status = share_enter(device, GM_SHARE_IPC, &scope, err);
  if (status != GM_OK) return status;
  status = share_ask(device, memory, out, err);
  gm__runtime_leave(device, &scope);
  return status;
}

gm_status gm__runtime_share_export(void *device, const gm_memory *memory, gm_share_kind kind, gm_shared *out,
                                   gm_error *err) {
  gm__runtime_device *opened = device;
  if (kind == GM_SHARE_IPC) return share_export_ipc(opened, memory, out, err);
  if (kind == GM_SHARE_FD) return gm__vmm_table_export(&opened->mapped, device, memory, out, err);
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, opened->api->name,
                  "memory is shared by IPC or as a descriptor, not by kind %d", (int)kind);
}

static gm_status share_check(const gm__runtime_device *device, const gm_shared *shared, gm_share_kind kind,
                             gm_error *err) {
  const bool fits = shared->struct_size >= sizeof *shared && shared->kind == kind && shared->bytes > 0;
  if (fits && (kind != GM_SHARE_FD || shared->fd >= 0)) return GM_OK;
  return gm__bad_argument(err, device->api->name, "`shared` has struct_size %u, kind %d, %llu bytes and descriptor %d",
                          (unsigned)shared->struct_size, (int)shared->kind, (unsigned long long)shared->bytes,
                          (int)shared->fd);
}

/* The range must lie in what was opened. */
static gm_status share_open(gm__runtime_device *device, const gm_shared *shared, uint64_t *out, gm_error *err) {
  const gm__runtime *api = device->api;
  gm__runtime_word opened = 0, base = 0;
  size_t whole = 0;
  int code = api->ipc_open(device, shared->ipc, &opened);
  if (code != GM__RUNTIME_SUCCESS) return gm__runtime_fail(device, code, api->ipc_open_op, err);
  if (!opened) return gm__runtime_nonsense(device, api->ipc_open_op, "gave no address", err);
  code = api->address_range(device, opened, &base, &whole);
  if (code == GM__RUNTIME_SUCCESS && shared->offset < whole && shared->bytes <= whole - shared->offset) {
    *out = opened;
    return GM_OK;
  }
  api->ipc_close.call(device, opened);
  if (code != GM__RUNTIME_SUCCESS) return gm__runtime_fail(device, code, api->address_range_op, err);
  return gm__bad_argument(err, api->ipc_open_op, "`shared`: %llu bytes at %llu, of an allocation of %zu",
                          (unsigned long long)shared->bytes, (unsigned long long)shared->offset, whole);
}

gm_status gm__runtime_share_import(void *device, const gm_shared *shared, gm_memory *out, gm_error *err) {
  gm__runtime_device *opened = device;
  gm__runtime_scope scope;
  uint64_t base = 0;
  if (shared->kind == GM_SHARE_FD) return gm__vmm_table_import(&opened->mapped, device, shared, out, err);
  gm_status status = share_check(opened, shared, GM_SHARE_IPC, err);
  if (status == GM_OK) status = share_enter(opened, GM_SHARE_IPC, &scope, err);
  if (status != GM_OK) return status;
  status = share_open(opened, shared, &base, err);
  gm__runtime_leave(opened, &scope);
  if (status != GM_OK) return status;
  *out = (gm_memory){.handle = base,
                     .address = base + shared->offset,
                     .bytes = shared->bytes,
                     .type = GM__POINTER_DEVICE,
                     .wrapped = true};
  return GM_OK;
}

gm_status gm__runtime_share_close(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  gm__runtime_device *opened = device;
  const gm__runtime_give *give = &opened->api->ipc_close;
  gm__runtime_scope scope;
  bool gone = false;
  if (mode == GM_CLOSE_ABANDON) return GM_OK;
  gm_status status = gm__vmm_table_free(&opened->mapped, device, memory, &gone, err);
  if (gone) return status;
  status = share_can(opened, GM_SHARE_IPC, err);
  if (status == GM_OK) status = gm__runtime_enter_release(opened, &scope, &gone, err);
  if (status != GM_OK || gone) return status;
  const int code = give->call(opened, memory->handle);
  gm__runtime_leave(opened, &scope);
  return gm__runtime_released(opened, code, give->op, err);
}

gm_status gm__runtime_share_export_vmm(void *device, uint64_t handle, uint64_t bytes, gm_shared *out, gm_error *err) {
  gm__runtime_device *opened = device;
  const gm__runtime_ask *export = &opened->api->fd_export;
  gm__runtime_scope scope;
  gm__runtime_word fd = UINT64_MAX;
  const gm_status status = share_enter(opened, GM_SHARE_FD, &scope, err);
  if (status != GM_OK) return status;
  const int code = export->call(opened, handle, &fd);
  gm__runtime_leave(opened, &scope);
  if (code != GM__RUNTIME_SUCCESS) return gm__runtime_fail(opened, code, export->op, err);
  if (fd > INT_MAX) return gm__runtime_nonsense(opened, export->op, "gave no file descriptor", err);
  *out = (gm_shared){.struct_size = sizeof *out, .kind = GM_SHARE_FD, .bytes = bytes, .whole_bytes = bytes};
  out->fd = (int)fd;
  return GM_OK;
}

gm_status gm__runtime_share_import_vmm(void *device, const gm_shared *shared, uint64_t *out_handle, gm_error *err) {
  gm__runtime_device *opened = device;
  const gm__runtime_ask *import = &opened->api->fd_import;
  gm__runtime_scope scope;
  gm__runtime_word handle = 0;
  gm_status status = share_check(opened, shared, GM_SHARE_FD, err);
  if (status == GM_OK) status = share_enter(opened, GM_SHARE_FD, &scope, err);
  if (status != GM_OK) return status;
  const int code = import->call(opened, (uint64_t)shared->fd, &handle);
  gm__runtime_leave(opened, &scope);
  if (code != GM__RUNTIME_SUCCESS) return gm__runtime_fail(opened, code, import->op, err);
  if (!handle) return gm__runtime_nonsense(opened, import->op, "gave no handle", err);
  *out_handle = handle;
  return GM_OK;
}
