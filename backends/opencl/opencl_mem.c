#include "backends/opencl/opencl_mem.h"

#include "backends/opencl/opencl_commit.h"
#include "backends/opencl/opencl_pointer.h"
#include "backends/opencl/opencl_status.h"
#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/native.h"
#include "core/base/sized.h"
#include "gm/native_opencl.h"

/* Invariants: `viewed` never goes back to false, since a kernel that was given a sub-buffer may run on; `held` is the
 * sum of `counted` over live memories, and never above the device's size where that is known: drivers give more than
 * there is, and fail, or swap, when it is touched. */

gm_status gm__opencl_memory_type_count(void *device, uint32_t *out, gm_error *err) {
  (void)err;
  *out = ((gm__opencl_device *)device)->kinds.count;
  return GM_OK;
}

static gm_status opencl_mem_check_type(const gm__opencl_device *device, uint32_t type, gm_error *err) {
  if (type < device->kinds.count) return GM_OK;
  return gm__bad_argument(err, "opencl", "`type` must be below %u, is %u", (unsigned)device->kinds.count,
                          (unsigned)type);
}

gm_status gm__opencl_memory_type(void *device, uint32_t type, gm_memory_type *out, gm_error *err) {
  const gm__opencl_device *opened = device;
  const gm_status status = opencl_mem_check_type(opened, type, err);
  if (status == GM_OK) *out = gm__opencl_kind_type(&opened->kinds, type, &opened->info);
  return status;
}

static gm_status opencl_mem_check(const gm__opencl_device *device, const gm_memory_params *params, gm_error *err) {
  const uint64_t most = device->info.max_alloc_bytes;
  const gm_status status = opencl_mem_check_type(device, params->type, err);
  if (status != GM_OK) return status;
  if (params->bytes == 0) return gm__bad_argument(err, "clCreateBuffer", "`bytes` must not be 0");
  if (params->align & (params->align - 1)) {
    return gm__bad_argument(err, "clCreateBuffer", "`align` must be a power of two, is %llu",
                            (unsigned long long)params->align);
  }
  if ((most && params->bytes > most) || params->bytes > SIZE_MAX) {
    return gm__fail(err, GM_ERR_ALLOCATION_TOO_LARGE, 0, "clCreateBuffer",
                    "%llu bytes asked, one allocation may have %llu (CL_DEVICE_MAX_MEM_ALLOC_SIZE)",
                    (unsigned long long)params->bytes, (unsigned long long)most);
  }
  if ((params->flags & GM_ALLOC_COMMIT) && !device->allow_queue) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "memory_alloc",
                    "committing takes a queue, and the engine forbids one of gm's own (allow_queue): commit the memory "
                    "on a stream");
  }
  return GM_OK;
}

static gm_status opencl_mem_count(gm__opencl_device *device, uint64_t bytes, gm_error *err) {
  const uint64_t total = device->info.total_bytes;
  uint64_t held = atomic_load(device->held);
  do {
    const uint64_t room = total ? (total > held ? total - held : 0) : UINT64_MAX - held;
    if (bytes <= room) continue;
    return gm__fail(err, GM_ERR_OUT_OF_DEVICE_MEMORY, 0, "clCreateBuffer",
                    "%llu bytes asked, %llu of the device's %llu are held already (the driver was not asked: it would "
                    "promise more than there is)",
                    (unsigned long long)bytes, (unsigned long long)held, (unsigned long long)total);
  } while (!atomic_compare_exchange_weak(device->held, &held, held + bytes));
  return GM_OK;
}

static void opencl_mem_discard(gm__opencl_device *device, gm__opencl_memory *memory) {
  if (memory->counted) atomic_fetch_sub(device->held, memory->counted);
  gm__release(device->services, memory, sizeof *memory);
}

/* The driver's part of a record. */
static cl_int opencl_mem_let_go(gm__opencl_device *device, const gm__opencl_memory *record) {
  const cl_int code = record->retained ? device->cl->clReleaseMemObject(record->retained) : CL_SUCCESS;
  const cl_int freed = gm__opencl_pointer_free(device, record->kind, record->base);
  return code == CL_SUCCESS ? freed : code;
}

static gm__opencl_memory *opencl_mem_record(gm__opencl_device *device, gm_error *err) {
  gm__opencl_memory *record = gm__alloc(device->services, sizeof *record);
  if (!record) gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "opencl", "no host memory for the memory's record");
  return record;
}

static gm_status opencl_mem_create(gm__opencl_device *device, const gm_memory_params *params, gm__opencl_memory *record,
                                   gm_error *err) {
  const uint64_t bytes = gm__opencl_pointer_padded(device, record->kind, params);
  cl_int code = CL_SUCCESS;
  if (gm__opencl_kind_counts(record->kind, &device->info)) {
    const gm_status status = opencl_mem_count(device, bytes, err);
    if (status != GM_OK) return status;
    record->counted = bytes;
  }
  if (gm__opencl_kind_is_svm(record->kind) || gm__opencl_kind_is_usm(record->kind)) {
    return gm__opencl_pointer_create(device, params, record, err);
  }
  const cl_mem_flags flags = record->kind == GM__OPENCL_BUFFER_HOST ? CL_MEM_ALLOC_HOST_PTR : 0;
  record->buffer =
      device->cl->clCreateBuffer(device->context, CL_MEM_READ_WRITE | flags, (size_t)params->bytes, NULL, &code);
  if (!record->buffer) return gm__opencl_device_fail(device, code, false, "clCreateBuffer", err);
  record->retained = record->buffer;
  record->whole = params->bytes;
  return GM_OK;
}

/* What gm hands out of a record. */
static gm_memory opencl_mem_answer(const gm__opencl_device *device, gm__opencl_memory *record, uint64_t bytes) {
  gm_memory memory = {.handle = (uintptr_t)record, .address = record->pointer, .bytes = bytes};
  memory.type = gm__opencl_kinds_find(&device->kinds, record->kind);
  const gm_memory_type type = gm__opencl_kind_type(&device->kinds, memory.type, &device->info);
  if (type.flags & GM_MEMORY_HOST_POINTER) memory.host = (void *)record->pointer;
  return memory;
}

gm_status gm__opencl_memory_alloc(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err) {
  gm__opencl_device *opened = device;
  gm_status status = opencl_mem_check(opened, params, err);
  if (status != GM_OK) return status;
  gm__opencl_memory *record = opencl_mem_record(opened, err);
  if (!record) return GM_ERR_OUT_OF_HOST_MEMORY;
  record->kind = opened->kinds.kinds[params->type];
  status = opencl_mem_create(opened, params, record, err);
  const gm_memory memory = opencl_mem_answer(opened, record, params->bytes);
  if (status == GM_OK && (params->flags & GM_ALLOC_COMMIT)) {
    status = gm__opencl_commit(opened, NULL, &memory, 0, params->bytes, err);
    if (status != GM_OK) opencl_mem_let_go(opened, record);
  }
  if (status != GM_OK) {
    opencl_mem_discard(opened, record);
    return status;
  }
  *out = memory;
  return GM_OK;
}

/* The record goes even if the driver refuses: the caller can do nothing with it any more. */
gm_status gm__opencl_memory_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  gm__opencl_device *opened = device;
  gm__opencl_memory *record = (gm__opencl_memory *)(uintptr_t)memory->handle;
  cl_int code = CL_SUCCESS;
  if (mode == GM_CLOSE_NORMAL) code = opencl_mem_let_go(opened, record);
  opencl_mem_discard(opened, record);
  return code == CL_SUCCESS ? GM_OK : gm__opencl_device_fail(opened, code, false, "clReleaseMemObject", err);
}

gm_status gm__opencl_memory_native(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                   gm_native_memory *out, gm_error *err) {
  (void)device;
  const gm__opencl_memory *record = gm__opencl_memory_of(memory);
  gm_opencl_memory native = {.head = *out};
  const gm_status status = gm__native_check(out, sizeof native, GM_API_OPENCL, "opencl", "out", err);
  if (status != GM_OK) return status;
  native.memory = record->pointer ? 0 : (uintptr_t)record->buffer;
  native.offset = record->pointer ? 0 : record->origin + offset;
  native.bytes = bytes;
  native.view = 0;
  native.pointer = record->pointer ? record->pointer + (uintptr_t)offset : 0;
  native.unified = gm__opencl_kind_is_usm(record->kind);
  native.memory_bytes = record->pointer ? 0 : record->whole;
  gm__sized_out(out, &native, sizeof native);
  return GM_OK;
}

static gm_status opencl_mem_ask(gm__opencl_device *device, cl_mem memory, cl_mem_info what, void *out, size_t bytes,
                                gm_error *err) {
  const cl_int code = device->cl->clGetMemObjectInfo(memory, what, bytes, out, NULL);
  return code == CL_SUCCESS ? GM_OK : gm__opencl_device_fail(device, code, false, "clGetMemObjectInfo", err);
}

/* The parent and the place in it of what may be a sub-buffer, and how many bytes it has. */
static gm_status opencl_wrap_resolve(gm__opencl_device *device, cl_mem memory, gm__opencl_memory *record,
                                     size_t *out_bytes, gm_error *err) {
  cl_context context = NULL;
  cl_mem_object_type type = 0;
  cl_mem parent = NULL;
  size_t origin = 0;
  gm_status status = opencl_mem_ask(device, memory, CL_MEM_CONTEXT, &context, sizeof context, err);
  if (status == GM_OK) status = opencl_mem_ask(device, memory, CL_MEM_TYPE, &type, sizeof type, err);
  if (status == GM_OK) status = opencl_mem_ask(device, memory, CL_MEM_SIZE, out_bytes, sizeof *out_bytes, err);
  if (status == GM_OK) {
    status = opencl_mem_ask(device, memory, CL_MEM_ASSOCIATED_MEMOBJECT, &parent, sizeof parent, err);
  }
  size_t whole = *out_bytes;
  if (status == GM_OK && parent) status = opencl_mem_ask(device, memory, CL_MEM_OFFSET, &origin, sizeof origin, err);
  if (status == GM_OK && parent) status = opencl_mem_ask(device, parent, CL_MEM_SIZE, &whole, sizeof whole, err);
  if (status != GM_OK) return status;
  if (context != device->context) {
    return gm__bad_argument(err, "opencl", "`memory` belongs to another context than the adopted device");
  }
  if (type != CL_MEM_OBJECT_BUFFER) return gm__bad_argument(err, "opencl", "`memory` must be a buffer, is an image");
  record->buffer = parent ? parent : memory;
  record->retained = memory;
  record->origin = origin;
  record->whole = whole;
  atomic_store(&record->viewed, parent != NULL);
  return GM_OK;
}

gm_status gm__opencl_wrap_range(const gm_opencl_memory *native, size_t have, uint64_t *out_bytes, gm_error *err) {
  if (native->offset >= have || native->bytes > have - native->offset) {
    return gm__bad_argument(err, "opencl", "`offset` %llu and `bytes` %llu reach past the %zu bytes of `memory`",
                            (unsigned long long)native->offset, (unsigned long long)native->bytes, have);
  }
  *out_bytes = native->bytes ? native->bytes : have - native->offset;
  return GM_OK;
}

static gm_status opencl_wrap_retain(gm__opencl_device *device, const gm_opencl_memory *native,
                                    gm__opencl_memory *record, uint64_t *out_bytes, gm_error *err) {
  size_t have = 0;
  gm_status status = opencl_wrap_resolve(device, (cl_mem)native->memory, record, &have, err);
  if (status == GM_OK) status = gm__opencl_wrap_range(native, have, out_bytes, err);
  if (status != GM_OK) return status;
  record->origin += native->offset;
  const cl_int code = device->cl->clRetainMemObject(record->retained);
  return code == CL_SUCCESS ? GM_OK : gm__opencl_device_fail(device, code, false, "clRetainMemObject", err);
}

/* A wrapped memory is the engine's: it is not counted. */
gm_status gm__opencl_memory_wrap(void *device, const gm_native_memory *native, gm_memory *out, gm_error *err) {
  gm__opencl_device *opened = device;
  gm_opencl_memory lent;
  uint64_t bytes = 0;
  gm_status status = gm__native_in(&lent, sizeof lent, native, GM_API_OPENCL, "opencl", "native", err);
  if (status != GM_OK) return status;
  if (!lent.memory == !lent.pointer) {
    return gm__bad_argument(err, "opencl",
                            "one of `memory` and `pointer` of the native memory must be 0, and not both");
  }
  gm__opencl_memory *record = opencl_mem_record(opened, err);
  if (!record) return GM_ERR_OUT_OF_HOST_MEMORY;
  status = lent.pointer ? gm__opencl_pointer_wrap(opened, &lent, record, &bytes, err)
                        : opencl_wrap_retain(opened, &lent, record, &bytes, err);
  if (status != GM_OK) {
    opencl_mem_discard(opened, record);
    return status;
  }
  *out = opencl_mem_answer(opened, record, bytes);
  out->wrapped = true;
  return GM_OK;
}

/* Checked here, since some drivers take any origin: a sub-buffer begins at a multiple of the device's alignment. */
gm_status gm__opencl_view_create(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, uint32_t usage,
                                 uint64_t *out_view, gm_error *err) {
  gm__opencl_device *opened = device;
  const gm__opencl_memory *record = gm__opencl_memory_of(memory);
  const cl_buffer_region region = {(size_t)(record->origin + offset), (size_t)bytes};
  (void)usage;
  if (!record->buffer) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "clCreateSubBuffer",
                    "unified shared memory is no buffer: use its address");
  }
  if (region.origin % opened->info.alignment) {
    return gm__bad_argument(err, "clCreateSubBuffer",
                            "`offset` %llu, byte %zu of the buffer, is no multiple of the device's alignment %llu",
                            (unsigned long long)offset, region.origin, (unsigned long long)opened->info.alignment);
  }
  if (bytes == 0) return gm__bad_argument(err, "clCreateSubBuffer", "`bytes` must not be 0");
  cl_int code = CL_SUCCESS;
  cl_mem view = opened->cl->clCreateSubBuffer(record->buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
  if (!view) return gm__opencl_device_fail(opened, code, false, "clCreateSubBuffer", err);
  atomic_store(&((gm__opencl_memory *)(uintptr_t)memory->handle)->viewed, true);
  *out_view = (uintptr_t)view;
  return GM_OK;
}

gm_status gm__opencl_view_destroy(void *device, uint64_t view, gm_close_mode mode, gm_error *err) {
  gm__opencl_device *opened = device;
  if (mode == GM_CLOSE_ABANDON) return GM_OK;
  const cl_int code = opened->cl->clReleaseMemObject((cl_mem)(uintptr_t)view);
  return code == CL_SUCCESS ? GM_OK : gm__opencl_device_fail(opened, code, false, "clReleaseMemObject", err);
}
