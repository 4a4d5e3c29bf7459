#include "backends/hip/hip_mem.h"

#include "backends/hip/hip_current.h"
#include "backends/hip/hip_info.h"
#include "backends/hip/hip_status.h"
#include "backends/hip/hip_stream.h"
#include "core/base/error.h"
#include "core/base/native.h"
#include "core/base/sized.h"
#include "gm/native_hip.h"

/* hipMallocAsync is not used: it was seen to zero or corrupt memory, to keep it after running out, and to ignore its
 * release threshold (rocm-systems#10943, #11642, #11690). gm's pool gives the same order over plain hipMalloc. */

gm_status gm__hip_memory_type_count(void *device, uint32_t *out, gm_error *err) {
  const gm__hip_device *opened = device;
  (void)err;
  *out = gm__pointer_types(&opened->info);
  return GM_OK;
}

gm_status gm__hip_memory_type(void *device, uint32_t type, gm_memory_type *out, gm_error *err) {
  const gm__hip_device *opened = device;
  const gm_status status = gm__pointer_type("HIP", &opened->info, type, out, err);
  if (status == GM_OK && type == GM__POINTER_DEVICE) {
    out->share_kinds = gm__hip_share_kinds(opened->driver, &opened->info);
  }
  return status;
}

static hipError_t hip_mem_release(const gm__hip_device *device, uint32_t type, uint64_t handle) {
  void *pointer = (void *)(uintptr_t)handle;
  return type == GM__HIP_PINNED ? device->hip->hipHostFree(pointer) : device->hip->hipFree(pointer);
}

static const char *hip_mem_release_op(uint32_t type) { return type == GM__HIP_PINNED ? "hipHostFree" : "hipFree"; }

static hipError_t hip_mem_call(const gm__hip_device *device, uint32_t type, size_t bytes, void **out) {
  const gm__hip_syms *hip = device->hip;
  if (type == GM__HIP_PINNED) return hip->hipHostMalloc(out, bytes, hipHostMallocPortable | hipHostMallocMapped);
  if (type == GM__HIP_MANAGED) return hip->hipMallocManaged(out, bytes, hipMemAttachGlobal);
  return hip->hipMalloc(out, bytes);
}

static gm_status hip_mem_pinned_address(gm__hip_device *device, gm__piece *piece, gm_error *err) {
  void *address = NULL;
  const hipError_t code = device->hip->hipHostGetDevicePointer(&address, (void *)(uintptr_t)piece->handle, 0);
  if (code != hipSuccess) return gm__hip_device_fail(device, code, "hipHostGetDevicePointer", err);
  if (!address) return gm__hip_nonsense(err, "hipHostGetDevicePointer", "gave no address");
  piece->address = (uintptr_t)address;
  return GM_OK;
}

/* Which memory is out is told by the call, not by the code. */
static gm_status hip_mem_take(void *device, uint32_t type, uint64_t bytes, gm__piece *out, gm_error *err) {
  static const char *const ops[] = {"hipMalloc", "hipHostMalloc", "hipMallocManaged"};
  void *pointer = NULL;
  const hipError_t code = hip_mem_call(device, type, (size_t)bytes, &pointer);
  if (code == hipErrorOutOfMemory && type == GM__HIP_PINNED) {
    return gm__hip_fail_as(err, GM_ERR_PINNED_LIMIT, code, ops[type]);
  }
  if (code != hipSuccess) return gm__hip_device_fail(device, code, ops[type], err);
  if (!pointer) return gm__hip_nonsense(err, ops[type], "gave no address");
  gm__piece piece = {.handle = (uintptr_t)pointer, .address = (uintptr_t)pointer};
  if (type != GM__HIP_DEVICE_MEMORY) piece.host = (uintptr_t)pointer;
  const gm_status status = type == GM__HIP_PINNED ? hip_mem_pinned_address(device, &piece, err) : GM_OK;
  if (status != GM_OK) {
    hip_mem_release(device, type, piece.handle);
    return status;
  }
  *out = piece;
  return GM_OK;
}

static gm_status hip_mem_give_back(void *device, uint32_t type, uint64_t handle, gm_error *err) {
  const hipError_t code = hip_mem_release(device, type, handle);
  return code == hipSuccess ? GM_OK : gm__hip_device_fail(device, code, hip_mem_release_op(type), err);
}

static const gm__piece_source hip_pieces = {"HIP", hip_mem_take, hip_mem_give_back};

/* Managed memory is taken when it is touched; contents of new memory are free. */
static gm_status hip_mem_commit(gm__hip_device *device, const gm_memory_params *params, const gm__piece *piece,
                                gm_error *err) {
  gm__hip_job job;
  if (params->type != GM__HIP_MANAGED || !(params->flags & GM_ALLOC_COMMIT)) return GM_OK;
  const gm_status status = gm__hip_begin(device, NULL, &job, err);
  if (status != GM_OK) return status;
  const hipDeviceptr_t first = (hipDeviceptr_t)(uintptr_t)piece->address;
  const hipError_t code = device->hip->hipMemsetD8Async(first, 0, (size_t)params->bytes, job.stream);
  return gm__hip_end(device, &job, code, "hipMemsetD8Async", NULL, err);
}

gm_status gm__hip_memory_alloc(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err) {
  gm__hip_device *opened = device;
  gm__hip_scope scope;
  gm__piece piece = {0};
  gm_status status = gm__pointer_check("HIP", &opened->info, params, err);
  if (status == GM_OK && params->share) {
    status = gm__pointer_check_share("HIP", gm__hip_share_kinds(opened->driver, &opened->info), params, err);
  }
  if (status == GM_OK && params->share == GM_SHARE_FD) {
    return gm__vmm_table_make(&opened->mapped, opened, params, out, err);
  }
  if (status == GM_OK) status = gm__hip_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  status = gm__hip_capture_check(opened, err);
  if (status == GM_OK) status = gm__piece_take(&hip_pieces, opened, params, opened->info.alignment, &piece, err);
  if (status == GM_OK) {
    status = hip_mem_commit(opened, params, &piece, err);
    if (status != GM_OK) hip_mem_release(opened, params->type, piece.handle);
  }
  gm__hip_leave(&scope);
  if (status != GM_OK) return status;
  *out = gm__piece_memory(&piece, params);
  return GM_OK;
}

/* hipFree waits for the device, which nobody relies on. */
gm_status gm__hip_memory_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  gm__hip_device *opened = device;
  gm__hip_scope scope;
  bool gone = false;
  if (mode == GM_CLOSE_ABANDON || memory->wrapped) return GM_OK;
  gm_status status = gm__vmm_table_free(&opened->mapped, opened, memory, &gone, err);
  if (gone) return status;
  status = gm__hip_enter_release(opened, &scope, &gone, err);
  if (status != GM_OK || gone) return status;
  const hipError_t code = hip_mem_release(opened, memory->type, memory->handle);
  status = gm__hip_device_released(opened, code, hip_mem_release_op(memory->type), err);
  gm__hip_leave(&scope);
  return status;
}

gm_status gm__hip_memory_native(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                gm_native_memory *out, gm_error *err) {
  (void)device;
  gm_hip_memory native = {.head = *out};
  const gm_status status = gm__native_check(out, sizeof native, GM_API_HIP, "hip", "out", err);
  if (status != GM_OK) return status;
  native.pointer = memory->address + offset;
  native.bytes = bytes;
  gm__sized_out(out, &native, sizeof native);
  return GM_OK;
}

gm_status gm__hip_map(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                      uint32_t mode, void **out, gm_error *err) {
  return gm__pointer_map("HIP", gm__hip_stream_sync, device, stream, memory, offset, bytes, mode, out, err);
}
