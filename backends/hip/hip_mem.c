#include "backends/hip/hip_mem.h"

#include "backends/hip/hip_current.h"
#include "backends/hip/hip_status.h"
#include "backends/hip/hip_stream.h"
#include "core/base/error.h"
#include "gm/native_hip.h"

/* hipMallocAsync is not used: it was seen to zero or corrupt memory, to keep it after running out, and to ignore its
 * release threshold (rocm-systems#10943, #11642, #11690). gm's pool gives the same order over plain hipMalloc. */

static uint32_t hip_mem_types(const gm__hip_device *device) {
  return device->info.capabilities & GM_CAP_MANAGED ? GM__HIP_MANAGED + 1 : GM__HIP_PINNED + 1;
}

gm_status gm__hip_memory_type_count(void *device, uint32_t *out, gm_error *err) {
  (void)err;
  *out = hip_mem_types(device);
  return GM_OK;
}

static gm_status hip_mem_check_type(const gm__hip_device *device, uint32_t type, gm_error *err) {
  const uint32_t types = hip_mem_types(device);
  if (type < types) return GM_OK;
  return gm__bad_argument(err, "hip", "`type` must be below %u, is %u", (unsigned)types, (unsigned)type);
}

static uint64_t hip_mem_most(const gm__hip_device *device, uint32_t type) {
  const uint64_t most = device->info.max_alloc_bytes;
  return type == GM__HIP_PINNED || !most ? INT64_MAX : most;
}

/* On an integrated device all of it is host memory, of one heap. */
gm_status gm__hip_memory_type(void *device, uint32_t type, gm_memory_type *out, gm_error *err) {
  const gm__hip_device *opened = device;
  const uint32_t host =
      GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_COHERENT | GM_MEMORY_HOST_CACHED | GM_MEMORY_HOST_POINTER;
  const gm_status status = hip_mem_check_type(opened, type, err);
  if (status != GM_OK) return status;
  gm_memory_type found = {.struct_size = sizeof found, .atom_bytes = 1};
  if (type == GM__HIP_DEVICE_MEMORY || opened->info.unified) found.heap_bytes = opened->info.total_bytes;
  if (!opened->info.unified) found.heap = type;
  found.max_alloc_bytes = hip_mem_most(opened, type);
  if (type == GM__HIP_DEVICE_MEMORY) found.flags = GM_MEMORY_DEVICE_LOCAL;
  if (type == GM__HIP_PINNED) found.flags = host | GM_MEMORY_PINNED;
  if (type == GM__HIP_MANAGED) found.flags = host;
  *out = found;
  return GM_OK;
}

static gm_status hip_mem_check(const gm__hip_device *device, const gm_memory_params *params, gm_error *err) {
  const uint64_t most = hip_mem_most(device, params->type);
  const gm_status status = hip_mem_check_type(device, params->type, err);
  if (status != GM_OK) return status;
  if (params->bytes == 0) return gm__bad_argument(err, "hip", "`bytes` must not be 0");
  if (params->align & (params->align - 1)) {
    return gm__bad_argument(err, "hip", "`align` must be a power of two, is %llu", (unsigned long long)params->align);
  }
  if (params->bytes <= most && params->align <= INT64_MAX / 2) return GM_OK;
  return gm__fail(err, GM_ERR_ALLOCATION_TOO_LARGE, 0, "hip", "%llu bytes asked, one allocation may have %llu",
                  (unsigned long long)params->bytes, (unsigned long long)most);
}

/* What one of the three calls gave. */
typedef struct hip_piece {
  void *handle;     /* what HIP takes back */
  uint64_t address; /* of the device's */
  uint64_t host;    /* 0: none */
} hip_piece;

static hipError_t hip_mem_release(const gm__hip_device *device, uint32_t type, void *handle) {
  return type == GM__HIP_PINNED ? device->hip->hipHostFree(handle) : device->hip->hipFree(handle);
}

static hipError_t hip_mem_call(const gm__hip_device *device, uint32_t type, size_t bytes, void **out) {
  const gm__hip_syms *hip = device->hip;
  if (type == GM__HIP_PINNED) return hip->hipHostMalloc(out, bytes, hipHostMallocPortable | hipHostMallocMapped);
  if (type == GM__HIP_MANAGED) return hip->hipMallocManaged(out, bytes, hipMemAttachGlobal);
  return hip->hipMalloc(out, bytes);
}

static gm_status hip_mem_pinned_address(gm__hip_device *device, hip_piece *piece, gm_error *err) {
  void *address = NULL;
  const hipError_t code = device->hip->hipHostGetDevicePointer(&address, piece->handle, 0);
  if (code != hipSuccess) return gm__hip_device_fail(device, code, "hipHostGetDevicePointer", err);
  if (!address) return gm__hip_nonsense(err, "hipHostGetDevicePointer", "gave no address");
  piece->address = (uintptr_t)address;
  return GM_OK;
}

/* Which memory is out is told by the call, not by the code. */
static gm_status hip_mem_take(gm__hip_device *device, uint32_t type, uint64_t bytes, hip_piece *out, gm_error *err) {
  static const char *const ops[] = {"hipMalloc", "hipHostMalloc", "hipMallocManaged"};
  void *pointer = NULL;
  const hipError_t code = hip_mem_call(device, type, (size_t)bytes, &pointer);
  if (code == hipErrorOutOfMemory && type == GM__HIP_PINNED) {
    return gm__hip_fail_as(err, GM_ERR_PINNED_LIMIT, code, ops[type]);
  }
  if (code != hipSuccess) return gm__hip_device_fail(device, code, ops[type], err);
  if (!pointer) return gm__hip_nonsense(err, ops[type], "gave no address");
  hip_piece piece = {.handle = pointer, .address = (uintptr_t)pointer};
  if (type != GM__HIP_DEVICE_MEMORY) piece.host = (uintptr_t)pointer;
  const gm_status status = type == GM__HIP_PINNED ? hip_mem_pinned_address(device, &piece, err) : GM_OK;
  if (status != GM_OK) {
    hip_mem_release(device, type, pointer);
    return status;
  }
  *out = piece;
  return GM_OK;
}

static bool hip_piece_fits(const hip_piece *piece, uint64_t align) {
  return piece->address % align == 0 && piece->host % align == 0;
}

/* HIP's own alignment is often enough, and always for large pieces; where it is not, some more is taken. */
static gm_status hip_mem_take_aligned(gm__hip_device *device, const gm_memory_params *params, hip_piece *out,
                                      gm_error *err) {
  const uint64_t align = params->align > device->info.alignment ? params->align : device->info.alignment;
  gm_status status = hip_mem_take(device, params->type, params->bytes, out, err);
  if (status != GM_OK || hip_piece_fits(out, align)) return status;
  const hipError_t code = hip_mem_release(device, params->type, out->handle);
  if (code != hipSuccess) return gm__hip_device_fail(device, code, "hipFree", err);
  status = hip_mem_take(device, params->type, params->bytes + align, out, err);
  if (status != GM_OK) return status;
  const uint64_t skip = (align - out->address % align) % align;
  out->address += skip;
  if (out->host) out->host += skip;
  if (hip_piece_fits(out, align)) return GM_OK;
  hip_mem_release(device, params->type, out->handle);
  return gm__hip_nonsense(err, "hipHostGetDevicePointer", "gave host and device addresses of different alignment");
}

/* Managed memory is taken when it is touched; contents of new memory are free. */
static gm_status hip_mem_commit(gm__hip_device *device, const gm_memory_params *params, const hip_piece *piece,
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
  hip_piece piece = {0};
  gm_status status = hip_mem_check(opened, params, err);
  if (status == GM_OK) status = gm__hip_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  status = gm__hip_capture_check(opened, err);
  if (status == GM_OK) status = hip_mem_take_aligned(opened, params, &piece, err);
  if (status == GM_OK) {
    status = hip_mem_commit(opened, params, &piece, err);
    if (status != GM_OK) hip_mem_release(opened, params->type, piece.handle);
  }
  gm__hip_leave(&scope);
  if (status != GM_OK) return status;
  *out = (gm_memory){.handle = (uintptr_t)piece.handle,
                     .address = piece.address,
                     .bytes = params->bytes,
                     .host = (void *)(uintptr_t)piece.host,
                     .type = params->type};
  return GM_OK;
}

/* hipFree waits for the device, which nobody relies on. */
gm_status gm__hip_memory_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  gm__hip_device *opened = device;
  gm__hip_scope scope;
  bool gone = false;
  if (mode == GM_CLOSE_ABANDON || memory->wrapped) return GM_OK;
  gm_status status = gm__hip_enter_release(opened, &scope, &gone, err);
  if (status != GM_OK || gone) return status;
  const hipError_t code = hip_mem_release(opened, memory->type, (void *)(uintptr_t)memory->handle);
  status = gm__hip_device_released(opened, code, memory->type == GM__HIP_PINNED ? "hipHostFree" : "hipFree", err);
  gm__hip_leave(&scope);
  return status;
}

gm_status gm__hip_memory_native(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                gm_native_memory *out, gm_error *err) {
  (void)device;
  gm_hip_memory *native = (gm_hip_memory *)out;
  const gm_status status = gm__hip_check_head(out->struct_size, out->api, sizeof *native, "out", err);
  if (status != GM_OK) return status;
  native->pointer = memory->address + offset;
  native->bytes = bytes;
  return GM_OK;
}
