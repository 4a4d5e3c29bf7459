#include "backends/opencl/opencl_entries.h"
#include "backends/opencl/opencl_mem.h"
#include "backends/opencl/opencl_pointer.h"
#include "backends/shared/native.h"
#include "backends/shared/plain.h"
#include "core/base/alloc.h"
#include "core/base/error.h"
#include "gm/native_opencl.h"

/* The life of memory: allocated, wrapped, freed. Invariants: `viewed` never becomes false again, because a kernel with
 * a sub-buffer may still run. `held` is the sum of `counted` over live memories. It never exceeds the device's size
 * where that is known: drivers promise more than there is, and fail or swap when somebody touches it. */

gm_status gm__opencl_memory_type_count(void *device, uint32_t *out, gm_error *err) {
  (void)err;
  *out = ((gm__opencl_device *)device)->kinds.count;
  return GM_OK;
}

gm_status gm__opencl_memory_type(void *device, uint32_t type, gm_memory_type *out, gm_error *err) {
  const gm__opencl_device *opened = device;
  const gm_status status = gm__plain_check_type("opencl", opened->kinds.count, type, err);
  if (status == GM_OK) *out = gm__opencl_kind_type(&opened->kinds, type, &opened->info);
  return status;
}

static gm_status opencl_mem_check(const gm__opencl_device *device, const gm_memory_params *params, gm_error *err) {
  const uint64_t most = device->info.max_alloc_bytes;
  const gm_status status = gm__plain_check("clCreateBuffer", device->kinds.count, params, err);
  if (status != GM_OK) return status;
  if ((most && params->bytes > most) || params->bytes > SIZE_MAX) {
    return gm__fail(err, GM_ERR_ALLOCATION_TOO_LARGE, "clCreateBuffer",
                    "%llu bytes asked, one allocation may have %llu (CL_DEVICE_MAX_MEM_ALLOC_SIZE)",
                    (unsigned long long)params->bytes, (unsigned long long)most);
  }
  if ((params->flags & GM_ALLOC_COMMIT) && !device->allow_queue) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "memory_alloc",
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
    return gm__fail(err, GM_ERR_OUT_OF_DEVICE_MEMORY, "clCreateBuffer",
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

/* Release the driver's objects of a record. */
static cl_int opencl_mem_let_go(gm__opencl_device *device, const gm__opencl_memory *record) {
  const cl_int code = record->retained ? device->cl->clReleaseMemObject(record->retained) : CL_SUCCESS;
  const cl_int freed = gm__opencl_pointer_free(device, record->kind, record->base);
  return code == CL_SUCCESS ? freed : code;
}

static gm__opencl_memory *opencl_mem_record(gm__opencl_device *device, gm_error *err) {
  gm__opencl_memory *record = gm__alloc(device->services, sizeof *record);
  if (!record) gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "opencl", "no host memory for the memory's record");
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
  if (gm__opencl_kind_has_address(record->kind)) {
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

/* The seam's memory for a record. */
static gm_memory opencl_mem_answer(const gm__opencl_device *device, gm__opencl_memory *record, uint64_t bytes) {
  gm_memory memory = {.handle = (uintptr_t)record, .address = record->pointer, .bytes = bytes};
  memory.type = gm__opencl_kinds_find(&device->kinds, record->kind);
  memory.host = (void *)record->host;
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

/* The record goes even if the driver refuses, because the caller can do nothing with it any more. */
gm_status gm__opencl_memory_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  gm__opencl_device *opened = device;
  gm__opencl_memory *record = (gm__opencl_memory *)(uintptr_t)memory->handle;
  cl_int code = CL_SUCCESS;
  if (mode == GM_CLOSE_NORMAL) code = opencl_mem_let_go(opened, record);
  opencl_mem_discard(opened, record);
  return gm__opencl_check(opened, code, "clReleaseMemObject", err);
}

static gm_status opencl_mem_ask(gm__opencl_device *device, cl_mem memory, cl_mem_info what, void *out, size_t bytes,
                                gm_error *err) {
  const cl_int code = device->cl->clGetMemObjectInfo(memory, what, bytes, out, NULL);
  return gm__opencl_check(device, code, "clGetMemObjectInfo", err);
}

/* Find the parent and the offset of `memory`, which may be a sub-buffer, and its bytes. */
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

static gm_status opencl_wrap_retain(gm__opencl_device *device, const gm_opencl_memory *native,
                                    gm__opencl_memory *record, uint64_t *out_bytes, gm_error *err) {
  size_t have = 0;
  gm_status status = opencl_wrap_resolve(device, (cl_mem)native->memory, record, &have, err);
  if (status == GM_OK) status = gm__opencl_wrap_range(native, have, out_bytes, err);
  if (status != GM_OK) return status;
  record->origin += native->offset;
  const cl_int code = device->cl->clRetainMemObject(record->retained);
  return gm__opencl_check(device, code, "clRetainMemObject", err);
}

/* Wrapped memory is the engine's, so gm does not count it. */
gm_status gm__opencl_memory_wrap(void *device, const gm_native_memory *native, gm_memory *out, gm_error *err) {
  gm__opencl_device *opened = device;
  gm_opencl_memory lent;
  uint64_t bytes = 0;
  gm_status status = gm__native_in(&lent, sizeof lent, native, GM_API_OPENCL, "opencl", "native", err);
  if (status != GM_OK) return status;
  if (!!lent.memory + !!lent.pointer + !!lent.mapped != 1) {
    return gm__bad_argument(err, "opencl",
                            "one of `memory`, `pointer` and `mapped` of the native memory must be set, and no other");
  }
  gm__opencl_memory *record = opencl_mem_record(opened, err);
  if (!record) return GM_ERR_OUT_OF_HOST_MEMORY;
  status = lent.pointer  ? gm__opencl_pointer_wrap(opened, &lent, record, &bytes, err)
           : lent.mapped ? gm__opencl_pointer_wrap_host(opened, &lent, record, &bytes, err)
                         : opencl_wrap_retain(opened, &lent, record, &bytes, err);
  if (status != GM_OK) {
    opencl_mem_discard(opened, record);
    return status;
  }
  *out = opencl_mem_answer(opened, record, bytes);
  out->wrapped = true;
  return GM_OK;
}
