#include "backends/opencl/opencl_pointer.h"

#include "core/base/error.h"

/* gm makes a buffer over each SVM (CL_MEM_USE_HOST_PTR with an SVM pointer: OpenCL defines it as the same storage). The
 * buffer serves copies to and from the host, boxes, sub-buffers and commits. clEnqueueSVMMemcpy is made for that, but
 * crashes drivers when the other side is plain host memory. USM cannot have such a buffer.
 * Kernels and commands see only the buffer where the kind is GM__OPENCL_BUFFER_SHARED.
 *
 * A driver need not know alignments above its largest type. For those gm asks for more and rounds the address up. */
enum { POINTER_LARGEST_TYPE = 128 };

static uint64_t pointer_align(const gm__opencl_device *device, const gm_memory_params *params) {
  return params->align > device->info.alignment ? params->align : device->info.alignment;
}

uint64_t gm__opencl_pointer_padded(const gm__opencl_device *device, gm__opencl_kind kind,
                                   const gm_memory_params *params) {
  const uint64_t align = pointer_align(device, params);
  if (!gm__opencl_kind_has_address(kind) || align <= POINTER_LARGEST_TYPE) return params->bytes;
  return params->bytes > UINT64_MAX - align ? UINT64_MAX : params->bytes + align;
}

void *gm__opencl_usm_take(gm__opencl_device *device, gm__opencl_kind kind, size_t bytes, cl_uint align, cl_int *code) {
  const gm__opencl_usm *usm = &device->kinds.usm;
  if (kind == GM__OPENCL_USM_HOST) return usm->clHostMemAllocINTEL(device->context, NULL, bytes, align, code);
  if (kind == GM__OPENCL_USM_SHARED) {
    return usm->clSharedMemAllocINTEL(device->context, device->id, NULL, bytes, align, code);
  }
  return usm->clDeviceMemAllocINTEL(device->context, device->id, NULL, bytes, align, code);
}

static gm_status pointer_take(gm__opencl_device *device, gm__opencl_kind kind, size_t bytes, cl_uint align, void **out,
                              gm_error *err) {
  static const char *const calls[] = {"clDeviceMemAllocINTEL", "clHostMemAllocINTEL", "clSharedMemAllocINTEL"};
  if (gm__opencl_kind_is_usm(kind)) {
    cl_int code = CL_SUCCESS;
    *out = gm__opencl_usm_take(device, kind, bytes, align, &code);
    if (*out) return GM_OK;
    return gm__opencl_device_fail(device, code, false, calls[kind - GM__OPENCL_USM_DEVICE], err);
  }
  const cl_svm_mem_flags flags = kind == GM__OPENCL_SVM ? 0 : CL_MEM_SVM_FINE_GRAIN_BUFFER;
  *out = device->cl->clSVMAlloc(device->context, CL_MEM_READ_WRITE | flags, bytes, align);
  if (*out) return GM_OK;
  return gm__fail(err, GM_ERR_OUT_OF_DEVICE_MEMORY, "clSVMAlloc", "clSVMAlloc gave no %zu bytes, and does not say why",
                  bytes);
}

cl_int gm__opencl_pointer_free(gm__opencl_device *device, gm__opencl_kind kind, void *base) {
  if (!base) return CL_SUCCESS;
  if (gm__opencl_kind_is_usm(kind)) return device->kinds.usm.clMemBlockingFreeINTEL(device->context, base);
  device->cl->clSVMFree(device->context, base);
  return CL_SUCCESS;
}

/* Make the buffer over SVM. USM needs none. */
static gm_status pointer_cover(gm__opencl_device *device, uintptr_t pointer, uint64_t bytes, gm__opencl_memory *record,
                               gm_error *err) {
  cl_int code = CL_SUCCESS;
  if (gm__opencl_kind_is_usm(record->kind)) return GM_OK;
  record->buffer = device->cl->clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, (size_t)bytes,
                                              (void *)pointer, &code);
  if (!record->buffer) return gm__opencl_device_fail(device, code, false, "clCreateBuffer", err);
  record->retained = record->buffer;
  return GM_OK;
}

/* Tell the record what a kind's address is good for. */
static void pointer_set(gm__opencl_memory *record, uintptr_t pointer) {
  const bool mapped = record->kind == GM__OPENCL_SVM || record->kind == GM__OPENCL_USM_DEVICE;
  record->pointer = record->kind == GM__OPENCL_BUFFER_SHARED ? 0 : pointer;
  record->host = mapped ? 0 : pointer;
}

gm_status gm__opencl_pointer_create(gm__opencl_device *device, const gm_memory_params *params,
                                    gm__opencl_memory *record, gm_error *err) {
  const uint64_t align = pointer_align(device, params), most = device->info.max_alloc_bytes;
  const uint64_t padded = gm__opencl_pointer_padded(device, record->kind, params);
  const cl_uint told = (cl_uint)(align < POINTER_LARGEST_TYPE ? align : POINTER_LARGEST_TYPE);
  void *base = NULL;
  if ((most && padded > most) || padded > SIZE_MAX - align) {
    return gm__fail(err, GM_ERR_ALLOCATION_TOO_LARGE, "opencl",
                    "%llu bytes at multiples of %llu asked, one allocation may have %llu",
                    (unsigned long long)params->bytes, (unsigned long long)align, (unsigned long long)most);
  }
  gm_status status = pointer_take(device, record->kind, (size_t)padded, told, &base, err);
  if (status != GM_OK) return status;
  const uintptr_t first = (uintptr_t)base, pointer = (first + (uintptr_t)align - 1) & ~((uintptr_t)align - 1);
  if (pointer < first || pointer - first > padded - params->bytes) {
    status = gm__fail(err, GM_ERR_DRIVER, "opencl", "the driver gave %p, which is no multiple of %u as asked", base,
                      (unsigned)told);
  }
  if (status == GM_OK) status = pointer_cover(device, pointer, params->bytes, record, err);
  if (status != GM_OK) {
    gm__opencl_pointer_free(device, record->kind, base);
    return status;
  }
  pointer_set(record, pointer);
  record->whole = params->bytes;
  record->base = base;
  return GM_OK;
}

typedef struct pointer_facts {
  cl_unified_shared_memory_type_intel type;
  void *base;
  size_t bytes;
} pointer_facts;

static gm_status pointer_ask(gm__opencl_device *device, const void *pointer, pointer_facts *out, gm_error *err) {
  const gm__opencl_usm *usm = &device->kinds.usm;
  *out = (pointer_facts){.type = CL_MEM_TYPE_UNKNOWN_INTEL};
  if (!usm->clGetMemAllocInfoINTEL) return GM_OK;
  cl_context context = device->context;
  cl_int code =
      usm->clGetMemAllocInfoINTEL(context, pointer, CL_MEM_ALLOC_TYPE_INTEL, sizeof out->type, &out->type, NULL);
  if (code == CL_SUCCESS) {
    code =
        usm->clGetMemAllocInfoINTEL(context, pointer, CL_MEM_ALLOC_BASE_PTR_INTEL, sizeof out->base, &out->base, NULL);
  }
  if (code == CL_SUCCESS) {
    code = usm->clGetMemAllocInfoINTEL(context, pointer, CL_MEM_ALLOC_SIZE_INTEL, sizeof out->bytes, &out->bytes, NULL);
  }
  return gm__opencl_check(device, code, "clGetMemAllocInfoINTEL", err);
}

/* OpenCL cannot tell the kind and the size of SVM, so the engine's word must do. */
static gm_status pointer_wrap_svm(gm__opencl_device *device, const gm_opencl_memory *native, gm__opencl_memory *record,
                                  gm_error *err) {
  if (gm__opencl_kinds_find(&device->kinds, GM__OPENCL_SVM) == UINT32_MAX) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "opencl",
                    "`pointer` is no unified shared memory, and the device has no shared virtual memory");
  }
  if (native->bytes == 0) return gm__bad_argument(err, "opencl", "`bytes` of shared virtual memory must not be 0");
  if (native->offset > UINTPTR_MAX - native->pointer || native->bytes > UINT64_MAX - native->offset) {
    return gm__bad_argument(err, "opencl", "`offset` and `bytes` reach past the last address");
  }
  record->kind = GM__OPENCL_SVM;
  record->origin = native->offset;
  return pointer_cover(device, native->pointer, native->offset + native->bytes, record, err);
}

static gm_status pointer_wrap_usm(const gm__opencl_device *device, const gm_opencl_memory *native,
                                  const pointer_facts *facts, gm__opencl_memory *record, uint64_t *out_bytes,
                                  gm_error *err) {
  const uintptr_t base = (uintptr_t)facts->base;
  record->kind = GM__OPENCL_USM_DEVICE;
  if (facts->type == CL_MEM_TYPE_HOST_INTEL) record->kind = GM__OPENCL_USM_HOST;
  if (facts->type == CL_MEM_TYPE_SHARED_INTEL) record->kind = GM__OPENCL_USM_SHARED;
  if (gm__opencl_kinds_find(&device->kinds, record->kind) == UINT32_MAX) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "opencl", "the device cannot reach unified shared memory of this kind");
  }
  if (native->pointer < base || native->pointer - base >= facts->bytes) {
    return gm__bad_argument(err, "clGetMemAllocInfoINTEL",
                            "`pointer` is not in the memory that the driver knows of it");
  }
  return gm__opencl_wrap_range(native, facts->bytes - (size_t)(native->pointer - base), out_bytes, err);
}

gm_status gm__opencl_pointer_wrap(gm__opencl_device *device, const gm_opencl_memory *native, gm__opencl_memory *record,
                                  uint64_t *out_bytes, gm_error *err) {
  pointer_facts facts;
  gm_status status = pointer_ask(device, (const void *)native->pointer, &facts, err);
  if (status != GM_OK) return status;
  if (facts.type == CL_MEM_TYPE_UNKNOWN_INTEL) {
    status = pointer_wrap_svm(device, native, record, err);
    *out_bytes = native->bytes;
  } else {
    status = pointer_wrap_usm(device, native, &facts, record, out_bytes, err);
  }
  pointer_set(record, native->pointer + (uintptr_t)native->offset);
  return status;
}

/* A device with memory of its own would copy the bytes there. */
gm_status gm__opencl_pointer_wrap_host(gm__opencl_device *device, const gm_opencl_memory *native,
                                       gm__opencl_memory *record, uint64_t *out_bytes, gm_error *err) {
  const uintptr_t first = (uintptr_t)native->mapped;
  if (!device->info.unified) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "opencl", "the device has memory of its own, and would copy `mapped`");
  }
  if (!native->bytes || native->offset) {
    return gm__bad_argument(err, "opencl", "with `mapped`, `bytes` must not be 0, and `offset` must be");
  }
  if (first % device->info.alignment || native->bytes > SIZE_MAX - first) {
    return gm__bad_argument(err, "opencl", "`mapped` must be a multiple of %llu, the device's alignment",
                            (unsigned long long)device->info.alignment);
  }
  record->whole = *out_bytes = native->bytes;
  return pointer_cover(device, first, native->bytes, record, err);
}
