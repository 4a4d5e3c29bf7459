#include "backends/cuda/cuda_mem.h"

#include "backends/cuda/cuda_context.h"
#include "backends/cuda/cuda_info.h"
#include "backends/cuda/cuda_status.h"
#include "backends/cuda/cuda_stream.h"
#include "core/base/error.h"
#include "core/base/native.h"
#include "core/base/sized.h"
#include "gm/native_cuda.h"

gm_status gm__cuda_memory_type_count(void *device, uint32_t *out, gm_error *err) {
  const gm__cuda_device *opened = device;
  (void)err;
  *out = gm__pointer_types(&opened->info);
  return GM_OK;
}

gm_status gm__cuda_memory_type(void *device, uint32_t type, gm_memory_type *out, gm_error *err) {
  const gm__cuda_device *opened = device;
  const gm_status status = gm__pointer_type("CUDA", &opened->info, type, out, err);
  if (status == GM_OK && type == GM__POINTER_DEVICE) {
    out->share_kinds = gm__cuda_share_kinds(opened->driver, opened->ordinal, &opened->info);
  }
  return status;
}

static CUresult cuda_mem_release(const gm__cuda_device *device, uint32_t type, uint64_t handle) {
  if (type == GM__CUDA_PINNED) return device->cu->cuMemFreeHost((void *)(uintptr_t)handle);
  return device->cu->cuMemFree_v2(handle);
}

static const char *cuda_mem_release_op(uint32_t type) {
  return type == GM__CUDA_PINNED ? "cuMemFreeHost" : "cuMemFree";
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

static gm_status cuda_mem_take_pinned(gm__cuda_device *device, uint64_t bytes, gm__piece *out, gm_error *err) {
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
  *out = (gm__piece){.handle = (uintptr_t)host, .address = address, .host = (uintptr_t)host};
  return GM_OK;
}

static gm_status cuda_mem_take(void *device, uint32_t type, uint64_t bytes, gm__piece *out, gm_error *err) {
  gm__cuda_device *opened = device;
  CUdeviceptr address = 0;
  if (type == GM__CUDA_PINNED) return cuda_mem_take_pinned(device, bytes, out, err);
  const CUresult code = type == GM__CUDA_MANAGED
                            ? opened->cu->cuMemAllocManaged(&address, (size_t)bytes, CU_MEM_ATTACH_GLOBAL)
                            : opened->cu->cuMemAlloc_v2(&address, (size_t)bytes);
  if (code != CUDA_SUCCESS) return cuda_mem_fail(device, type, code, err);
  if (!address) return gm__cuda_nonsense(err, cuda_mem_op(type), "gave no address");
  *out = (gm__piece){.handle = address, .address = address, .host = type == GM__CUDA_MANAGED ? address : 0};
  return GM_OK;
}

static gm_status cuda_mem_give_back(void *device, uint32_t type, uint64_t handle, gm_error *err) {
  const CUresult code = cuda_mem_release(device, type, handle);
  return code == CUDA_SUCCESS ? GM_OK : gm__cuda_device_fail(device, code, cuda_mem_release_op(type), err);
}

static const gm__piece_source cuda_pieces = {"CUDA", cuda_mem_take, cuda_mem_give_back};

/* Managed memory is taken when it is touched; contents of new memory are free. */
static gm_status cuda_mem_commit(gm__cuda_device *device, const gm_memory_params *params, const gm__piece *piece,
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
  gm__piece piece = {0};
  gm_status status = gm__pointer_check("CUDA", &opened->info, params, err);
  if (status == GM_OK && params->share) {
    status = gm__pointer_check_share("CUDA", gm__cuda_share_kinds(opened->driver, opened->ordinal, &opened->info),
                                     params, err);
  }
  if (status == GM_OK && params->share == GM_SHARE_FD) {
    return gm__vmm_table_make(&opened->mapped, opened, params, out, err);
  }
  if (status == GM_OK) status = gm__cuda_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  status = gm__cuda_capture_check(opened, err);
  if (status == GM_OK) status = gm__piece_take(&cuda_pieces, opened, params, opened->info.alignment, &piece, err);
  if (status == GM_OK) {
    status = cuda_mem_commit(opened, params, &piece, err);
    if (status != GM_OK) cuda_mem_release(opened, params->type, piece.handle);
  }
  gm__cuda_leave(&scope);
  if (status != GM_OK) return status;
  *out = gm__piece_memory(&piece, params);
  return GM_OK;
}

/* cuMemFree may wait for the device, which nobody relies on. */
gm_status gm__cuda_memory_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  gm__cuda_device *opened = device;
  gm__cuda_scope scope;
  bool gone = false;
  if (mode == GM_CLOSE_ABANDON || memory->wrapped) return GM_OK;
  gm_status status = gm__vmm_table_free(&opened->mapped, opened, memory, &gone, err);
  if (gone) return status;
  status = gm__cuda_enter_release(opened, &scope, &gone, err);
  if (status != GM_OK || gone) return status;
  const CUresult code = cuda_mem_release(opened, memory->type, memory->handle);
  gm__cuda_leave(&scope);
  return gm__cuda_device_released(opened, code, cuda_mem_release_op(memory->type), err);
}

gm_status gm__cuda_memory_native(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                 gm_native_memory *out, gm_error *err) {
  (void)device;
  gm_cuda_memory native = {.head = *out};
  const gm_status status = gm__native_check(out, sizeof native, GM_API_CUDA, "cuda", "out", err);
  if (status != GM_OK) return status;
  native.pointer = memory->address + offset;
  native.bytes = bytes;
  gm__sized_out(out, &native, sizeof native);
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
  gm_cuda_memory lent;
  gm__cuda_scope scope;
  gm_status status = gm__native_in(&lent, sizeof lent, native, GM_API_CUDA, "cuda", "native", err);
  if (status != GM_OK) return status;
  status = gm__pointer_check_wrap("CUDA", lent.pointer, lent.bytes, err);
  if (status == GM_OK) status = gm__cuda_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  status = cuda_wrap_look(opened, &lent, out, err);
  gm__cuda_leave(&scope);
  return status;
}

gm_status gm__cuda_map(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                       uint32_t mode, void **out, gm_error *err) {
  return gm__pointer_map("CUDA", gm__cuda_stream_sync, device, stream, memory, offset, bytes, mode, out, err);
}
