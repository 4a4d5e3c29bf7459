#include "backends/cuda/cuda_mem.h"

#include "backends/cuda/cuda_context.h"
#include "backends/cuda/cuda_status.h"
#include "backends/cuda/cuda_stream.h"
#include "core/base/error.h"
#include "gm/native_cuda.h"

static uint32_t cuda_mem_types(const gm__cuda_device *device) {
  return device->info.capabilities & GM_CAP_MANAGED ? GM__CUDA_MANAGED + 1 : GM__CUDA_PINNED + 1;
}

gm_status gm__cuda_memory_type_count(void *device, uint32_t *out, gm_error *err) {
  (void)err;
  *out = cuda_mem_types(device);
  return GM_OK;
}

static gm_status cuda_mem_check_type(const gm__cuda_device *device, uint32_t type, gm_error *err) {
  const uint32_t types = cuda_mem_types(device);
  if (type < types) return GM_OK;
  return gm__bad_argument(err, "cuda", "`type` must be below %u, is %u", (unsigned)types, (unsigned)type);
}

/* On an integrated device all of it is host memory, of one heap. Managed memory lies where it was last used, and may be
 * more than the device has, but is not let be: drivers have been seen to hang on that. */
gm_status gm__cuda_memory_type(void *device, uint32_t type, gm_memory_type *out, gm_error *err) {
  const gm__cuda_device *opened = device;
  const uint32_t host =
      GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_COHERENT | GM_MEMORY_HOST_CACHED | GM_MEMORY_HOST_POINTER;
  const gm_status status = cuda_mem_check_type(opened, type, err);
  if (status != GM_OK) return status;
  gm_memory_type found = {.struct_size = sizeof found, .atom_bytes = 1};
  if (type == GM__CUDA_DEVICE_MEMORY || opened->info.unified) found.heap_bytes = opened->info.total_bytes;
  if (!opened->info.unified) found.heap = type;
  if (type != GM__CUDA_PINNED) found.max_alloc_bytes = opened->info.max_alloc_bytes;
  if (type == GM__CUDA_PINNED) found.max_alloc_bytes = INT64_MAX;
  if (type == GM__CUDA_DEVICE_MEMORY) found.flags = GM_MEMORY_DEVICE_LOCAL;
  if (type == GM__CUDA_PINNED) found.flags = host | GM_MEMORY_PINNED;
  if (type == GM__CUDA_MANAGED) found.flags = host;
  *out = found;
  return GM_OK;
}

static gm_status cuda_mem_check(const gm__cuda_device *device, const gm_memory_params *params, gm_error *err) {
  const uint64_t most =
      params->type == GM__CUDA_PINNED || !device->info.max_alloc_bytes ? INT64_MAX : device->info.max_alloc_bytes;
  const gm_status status = cuda_mem_check_type(device, params->type, err);
  if (status != GM_OK) return status;
  if (params->bytes == 0) return gm__bad_argument(err, "cuda", "`bytes` must not be 0");
  if (params->align & (params->align - 1)) {
    return gm__bad_argument(err, "cuda", "`align` must be a power of two, is %llu", (unsigned long long)params->align);
  }
  if (params->bytes <= most && params->align <= INT64_MAX / 2) return GM_OK;
  return gm__fail(err, GM_ERR_ALLOCATION_TOO_LARGE, 0, "cuda", "%llu bytes asked, one allocation may have %llu",
                  (unsigned long long)params->bytes, (unsigned long long)most);
}

/* What one of the three calls gave. */
typedef struct cuda_piece {
  uint64_t handle;  /* what the driver takes back */
  uint64_t address; /* of the device's */
  uint64_t host;    /* 0: none */
} cuda_piece;

static CUresult cuda_mem_release(const gm__cuda_device *device, uint32_t type, uint64_t handle) {
  if (type == GM__CUDA_PINNED) return device->cu->cuMemFreeHost((void *)(uintptr_t)handle);
  return device->cu->cuMemFree_v2(handle);
}

static const char *cuda_mem_op(uint32_t type) {
  static const char *const names[] = {"cuMemAlloc", "cuMemHostAlloc", "cuMemAllocManaged"};
  return names[type];
}

/* Which memory is out is told by the call, not by the code. */
static gm_status cuda_mem_fail(gm__cuda_device *device, uint32_t type, CUresult code, gm_error *err) {
  if (type == GM__CUDA_PINNED && code == CUDA_ERROR_OUT_OF_MEMORY) {
    return gm__cuda_fail_as(err, GM_ERR_PINNED_LIMIT, code, cuda_mem_op(type));
  }
  return gm__cuda_device_fail(device, code, cuda_mem_op(type), err);
}

static gm_status cuda_mem_take_pinned(gm__cuda_device *device, uint64_t bytes, cuda_piece *out, gm_error *err) {
  void *host = NULL;
  CUdeviceptr address = 0;
  CUresult code =
      device->cu->cuMemHostAlloc(&host, (size_t)bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
  if (code != CUDA_SUCCESS) return cuda_mem_fail(device, GM__CUDA_PINNED, code, err);
  if (!host) return gm__cuda_nonsense(err, "cuMemHostAlloc", "gave no memory");
  code = device->cu->cuMemHostGetDevicePointer_v2(&address, host, 0);
  if (code != CUDA_SUCCESS || !address) {
    device->cu->cuMemFreeHost(host);
    if (code != CUDA_SUCCESS) return gm__cuda_device_fail(device, code, "cuMemHostGetDevicePointer", err);
    return gm__cuda_nonsense(err, "cuMemHostGetDevicePointer", "gave no address");
  }
  *out = (cuda_piece){.handle = (uintptr_t)host, .address = address, .host = (uintptr_t)host};
  return GM_OK;
}

static gm_status cuda_mem_take(gm__cuda_device *device, uint32_t type, uint64_t bytes, cuda_piece *out, gm_error *err) {
  CUdeviceptr address = 0;
  if (type == GM__CUDA_PINNED) return cuda_mem_take_pinned(device, bytes, out, err);
  const CUresult code = type == GM__CUDA_MANAGED
                            ? device->cu->cuMemAllocManaged(&address, (size_t)bytes, CU_MEM_ATTACH_GLOBAL)
                            : device->cu->cuMemAlloc_v2(&address, (size_t)bytes);
  if (code != CUDA_SUCCESS) return cuda_mem_fail(device, type, code, err);
  if (!address) return gm__cuda_nonsense(err, cuda_mem_op(type), "gave no address");
  *out = (cuda_piece){.handle = address, .address = address, .host = type == GM__CUDA_MANAGED ? address : 0};
  return GM_OK;
}

static bool cuda_piece_fits(const cuda_piece *piece, uint64_t align) {
  return piece->address % align == 0 && piece->host % align == 0;
}

/* The driver's own alignment is often enough, and always for large pieces; where it is not, some more is taken. */
static gm_status cuda_mem_take_aligned(gm__cuda_device *device, const gm_memory_params *params, cuda_piece *out,
                                       gm_error *err) {
  const uint64_t align = params->align > device->info.alignment ? params->align : device->info.alignment;
  gm_status status = cuda_mem_take(device, params->type, params->bytes, out, err);
  if (status != GM_OK || cuda_piece_fits(out, align)) return status;
  CUresult code = cuda_mem_release(device, params->type, out->handle);
  if (code != CUDA_SUCCESS) return gm__cuda_device_fail(device, code, "cuMemFree", err);
  status = cuda_mem_take(device, params->type, params->bytes + align, out, err);
  if (status != GM_OK) return status;
  const uint64_t skip = (align - out->address % align) % align;
  out->address += skip;
  if (out->host) out->host += skip;
  if (cuda_piece_fits(out, align)) return GM_OK;
  cuda_mem_release(device, params->type, out->handle);
  return gm__cuda_nonsense(err, cuda_mem_op(params->type), "gave host and device addresses of different alignment");
}

/* Managed memory is taken when it is touched; contents of new memory are free. */
static gm_status cuda_mem_commit(gm__cuda_device *device, const gm_memory_params *params, const cuda_piece *piece,
                                 gm_error *err) {
  gm__cuda_job job;
  if (params->type != GM__CUDA_MANAGED || !(params->flags & GM_ALLOC_COMMIT)) return GM_OK;
  const gm_status status = gm__cuda_begin(device, NULL, &job, err);
  if (status != GM_OK) return status;
  const CUresult code = device->cu->cuMemsetD8Async(piece->address, 0, (size_t)params->bytes, job.stream);
  return gm__cuda_end(device, &job, code, "cuMemsetD8Async", NULL, err);
}

gm_status gm__cuda_memory_alloc(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err) {
  gm__cuda_device *opened = device;
  gm__cuda_scope scope;
  cuda_piece piece = {0};
  gm_status status = cuda_mem_check(opened, params, err);
  if (status == GM_OK) status = gm__cuda_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  status = gm__cuda_capture_check(opened, err);
  if (status == GM_OK) status = cuda_mem_take_aligned(opened, params, &piece, err);
  if (status == GM_OK) {
    status = cuda_mem_commit(opened, params, &piece, err);
    if (status != GM_OK) cuda_mem_release(opened, params->type, piece.handle);
  }
  gm__cuda_leave(&scope);
  if (status != GM_OK) return status;
  *out = (gm_memory){.handle = piece.handle,
                     .address = piece.address,
                     .bytes = params->bytes,
                     .host = (void *)(uintptr_t)piece.host,
                     .type = params->type};
  return GM_OK;
}

/* cuMemFree may wait for the device, which nobody relies on. */
gm_status gm__cuda_memory_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  gm__cuda_device *opened = device;
  gm__cuda_scope scope;
  bool gone = false;
  if (mode == GM_CLOSE_ABANDON || memory->wrapped) return GM_OK;
  const gm_status status = gm__cuda_enter_release(opened, &scope, &gone, err);
  if (status != GM_OK || gone) return status;
  const CUresult code = cuda_mem_release(opened, memory->type, memory->handle);
  gm__cuda_leave(&scope);
  return gm__cuda_device_released(opened, code, "cuMemFree", err);
}

gm_status gm__cuda_memory_native(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                 gm_native_memory *out, gm_error *err) {
  (void)device;
  gm_cuda_memory *native = (gm_cuda_memory *)out;
  const gm_status status = gm__cuda_check_head(out->struct_size, out->api, sizeof *native, "out", err);
  if (status != GM_OK) return status;
  native->pointer = memory->address + offset;
  native->bytes = bytes;
  return GM_OK;
}

typedef struct cuda_facts { /* what the driver knows of a pointer */
  int kind, ordinal;
  int managed;
  void *host;
} cuda_facts;

static gm_status cuda_wrap_ask(gm__cuda_device *device, CUdeviceptr pointer, cuda_facts *out, gm_error *err) {
  const gm__cuda_syms *cu = device->cu;
  cuda_facts facts = {.ordinal = -1};
  unsigned int kind = 0;
  CUresult code = cu->cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer);
  if (code == CUDA_ERROR_INVALID_VALUE) {
    return gm__bad_argument(err, "cuPointerGetAttribute", "`pointer` %#llx is no memory that CUDA knows", pointer);
  }
  if (code == CUDA_SUCCESS) {
    code = cu->cuPointerGetAttribute(&facts.ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer);
  }
  if (code != CUDA_SUCCESS) return gm__cuda_device_fail(device, code, "cuPointerGetAttribute", err);
  facts.kind = (int)kind;
  /* Not every memory has an answer to these two. */
  if (cu->cuPointerGetAttribute(&facts.managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer) != CUDA_SUCCESS) {
    facts.managed = 0;
  }
  if (cu->cuPointerGetAttribute(&facts.host, CU_POINTER_ATTRIBUTE_HOST_POINTER, pointer) != CUDA_SUCCESS) {
    facts.host = NULL;
  }
  *out = facts;
  return GM_OK;
}

static gm_status cuda_wrap_type(const gm__cuda_device *device, const cuda_facts *facts, uint32_t *out, gm_error *err) {
  if (facts->managed && device->info.capabilities & GM_CAP_MANAGED) {
    *out = GM__CUDA_MANAGED;
  } else if (facts->kind == CU_MEMORYTYPE_HOST && facts->host) {
    *out = GM__CUDA_PINNED;
  } else if (facts->kind == CU_MEMORYTYPE_DEVICE && facts->ordinal == device->ordinal) {
    *out = GM__CUDA_DEVICE_MEMORY;
  } else {
    return gm__bad_argument(err, "cuda", "`pointer` is memory of kind %d on device %d, and this is device %d",
                            facts->kind, facts->ordinal, (int)device->ordinal);
  }
  return GM_OK;
}

/* Both ends are asked for; what lies between may be several mappings, of which the driver tells one at a time. */
static gm_status cuda_wrap_look(gm__cuda_device *device, const gm_cuda_memory *lent, gm_memory *out, gm_error *err) {
  cuda_facts first = {0}, last = {0};
  uint32_t type = 0;
  gm_status status = cuda_wrap_ask(device, lent->pointer, &first, err);
  if (status == GM_OK) status = cuda_wrap_ask(device, lent->pointer + lent->bytes - 1, &last, err);
  if (status == GM_OK) status = cuda_wrap_type(device, &first, &type, err);
  if (status != GM_OK) return status;
  if (first.kind != last.kind || first.ordinal != last.ordinal || first.managed != last.managed) {
    return gm__bad_argument(err, "cuda", "`bytes` %llu reach from one memory into another",
                            (unsigned long long)lent->bytes);
  }
  *out = (gm_memory){.handle = lent->pointer,
                     .address = lent->pointer,
                     .bytes = lent->bytes,
                     .host = type == GM__CUDA_DEVICE_MEMORY ? NULL : first.host,
                     .type = type,
                     .wrapped = true};
  if (type == GM__CUDA_MANAGED) out->host = (void *)(uintptr_t)lent->pointer;
  return GM_OK;
}

gm_status gm__cuda_memory_wrap(void *device, const gm_native_memory *native, gm_memory *out, gm_error *err) {
  gm__cuda_device *opened = device;
  const gm_cuda_memory *lent = (const gm_cuda_memory *)native;
  gm__cuda_scope scope;
  gm_status status = gm__cuda_check_head(native->struct_size, native->api, sizeof *lent, "native", err);
  if (status != GM_OK) return status;
  if (!lent->pointer || !lent->bytes || lent->bytes - 1 > UINT64_MAX - lent->pointer) {
    return gm__bad_argument(err, "cuda", "`pointer` and `bytes` of the native memory must not be 0 or wrap around");
  }
  status = gm__cuda_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  status = cuda_wrap_look(opened, lent, out, err);
  gm__cuda_leave(&scope);
  return status;
}
