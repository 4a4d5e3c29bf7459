#include "backends/opencl/opencl_mem.h"

#include "backends/opencl/opencl_commit.h"
#include "backends/opencl/opencl_status.h"
#include "core/base/alloc.h"
#include "core/base/error.h"
#include "gm/native_opencl.h"

/* Invariants: commands of gm's own name a parent buffer and an offset, never a sub-buffer, since using both at a time
 * is undefined; `held` is the sum of `counted` over live memories, and never above the device's size where that is
 * known: drivers give more than there is, and fail, or swap, when it is touched. */

enum { OPENCL_TYPE_DEVICE = 0, OPENCL_TYPE_HOST = 1, OPENCL_TYPES = 2 };

gm_status gm__opencl_memory_type_count(void *device, uint32_t *out, gm_error *err) {
  (void)device;
  (void)err;
  *out = OPENCL_TYPES;
  return GM_OK;
}

/* Every buffer can be mapped, and the map command itself makes both sides agree: nothing to flush. A discrete device
 * keeps CL_MEM_ALLOC_HOST_PTR buffers in page-locked host memory, which is another heap, of unknown size. */
gm_status gm__opencl_memory_type(void *device, uint32_t type, gm_memory_type *out, gm_error *err) {
  const gm_device_info *info = &((gm__opencl_device *)device)->info;
  if (type >= OPENCL_TYPES) return gm__bad_argument(err, "opencl", "`type` must be below 2, is %u", (unsigned)type);
  const uint32_t mapped = GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_COHERENT;
  gm_memory_type found = {.struct_size = sizeof found,
                          .flags = GM_MEMORY_DEVICE_LOCAL | mapped,
                          .heap_bytes = info->total_bytes,
                          .max_alloc_bytes = info->max_alloc_bytes,
                          .atom_bytes = 1};
  if (info->unified) {
    found.flags |= GM_MEMORY_HOST_CACHED;
  } else if (type == OPENCL_TYPE_HOST) {
    found.flags = mapped | GM_MEMORY_HOST_CACHED | GM_MEMORY_PINNED;
    found.heap = 1;
    found.heap_bytes = 0;
  }
  *out = found;
  return GM_OK;
}

static gm_status opencl_mem_check(const gm__opencl_device *device, const gm_memory_params *params, gm_error *err) {
  const uint64_t most = device->info.max_alloc_bytes;
  if (params->type >= OPENCL_TYPES) {
    return gm__bad_argument(err, "clCreateBuffer", "`type` must be below 2, is %u", (unsigned)params->type);
  }
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
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "clCreateBuffer",
                    "committing needs a queue and the engine forbids one of gm's own: use the commit call with an "
                    "adopted stream");
  }
  return GM_OK;
}

/* Host memory of a discrete device is not the device's to count. */
static bool opencl_mem_counts(const gm__opencl_device *device, uint32_t type) {
  return device->info.unified || type == OPENCL_TYPE_DEVICE;
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

static gm__opencl_memory *opencl_mem_record(gm__opencl_device *device, gm_error *err) {
  gm__opencl_memory *record = gm__alloc(device->services, sizeof *record);
  if (!record) gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "opencl", "no host memory for the memory's record");
  return record;
}

static gm_status opencl_mem_create(gm__opencl_device *device, const gm_memory_params *params, gm__opencl_memory *record,
                                   gm_error *err) {
  cl_int code = CL_SUCCESS;
  cl_mem_flags flags = CL_MEM_READ_WRITE;
  if (opencl_mem_counts(device, params->type)) {
    const gm_status status = opencl_mem_count(device, params->bytes, err);
    if (status != GM_OK) return status;
    record->counted = params->bytes;
  }
  if (params->type == OPENCL_TYPE_HOST) flags |= CL_MEM_ALLOC_HOST_PTR;
  record->buffer = device->cl->clCreateBuffer(device->context, flags, (size_t)params->bytes, NULL, &code);
  if (!record->buffer) return gm__opencl_device_fail(device, code, false, "clCreateBuffer", err);
  record->retained = record->buffer;
  return GM_OK;
}

gm_status gm__opencl_memory_alloc(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err) {
  gm__opencl_device *opened = device;
  gm_status status = opencl_mem_check(opened, params, err);
  if (status != GM_OK) return status;
  gm__opencl_memory *record = opencl_mem_record(opened, err);
  if (!record) return GM_ERR_OUT_OF_HOST_MEMORY;
  const gm_memory memory = {.handle = (uintptr_t)record, .bytes = params->bytes, .type = params->type};
  status = opencl_mem_create(opened, params, record, err);
  if (status == GM_OK && (params->flags & GM_ALLOC_COMMIT)) {
    status = gm__opencl_commit(opened, NULL, &memory, 0, params->bytes, err);
    if (status != GM_OK) opened->cl->clReleaseMemObject(record->buffer);
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
  if (mode == GM_CLOSE_NORMAL) code = opened->cl->clReleaseMemObject(record->retained);
  opencl_mem_discard(opened, record);
  return code == CL_SUCCESS ? GM_OK : gm__opencl_device_fail(opened, code, false, "clReleaseMemObject", err);
}

gm_status gm__opencl_memory_native(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                   gm_native_memory *out, gm_error *err) {
  (void)device;
  const gm__opencl_memory *record = gm__opencl_memory_of(memory);
  gm_opencl_memory *native = (gm_opencl_memory *)out;
  const gm_status status = gm__opencl_check_head(out->struct_size, out->api, sizeof *native, "out", err);
  if (status != GM_OK) return status;
  native->memory = (uintptr_t)record->buffer;
  native->offset = record->origin + offset;
  native->bytes = bytes;
  native->view = 0;
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
  if (status == GM_OK && parent) status = opencl_mem_ask(device, memory, CL_MEM_OFFSET, &origin, sizeof origin, err);
  if (status != GM_OK) return status;
  if (context != device->context) {
    return gm__bad_argument(err, "opencl", "`memory` belongs to another context than the adopted device");
  }
  if (type != CL_MEM_OBJECT_BUFFER) return gm__bad_argument(err, "opencl", "`memory` must be a buffer, is an image");
  record->buffer = parent ? parent : memory;
  record->retained = memory;
  record->origin = origin;
  return GM_OK;
}

static gm_status opencl_wrap_range(const gm_opencl_memory *native, size_t have, uint64_t *out_bytes, gm_error *err) {
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
  if (status == GM_OK) status = opencl_wrap_range(native, have, out_bytes, err);
  if (status != GM_OK) return status;
  record->origin += native->offset;
  const cl_int code = device->cl->clRetainMemObject(record->retained);
  return code == CL_SUCCESS ? GM_OK : gm__opencl_device_fail(device, code, false, "clRetainMemObject", err);
}

/* A wrapped memory is the engine's: it is not counted. */
gm_status gm__opencl_memory_wrap(void *device, const gm_native_memory *native, gm_memory *out, gm_error *err) {
  gm__opencl_device *opened = device;
  const gm_opencl_memory *lent = (const gm_opencl_memory *)native;
  uint64_t bytes = 0;
  gm_status status = gm__opencl_check_head(native->struct_size, native->api, sizeof *lent, "native", err);
  if (status != GM_OK) return status;
  if (!lent->memory) return gm__bad_argument(err, "opencl", "`memory` of the native memory must not be 0");
  gm__opencl_memory *record = opencl_mem_record(opened, err);
  if (!record) return GM_ERR_OUT_OF_HOST_MEMORY;
  status = opencl_wrap_retain(opened, lent, record, &bytes, err);
  if (status != GM_OK) {
    opencl_mem_discard(opened, record);
    return status;
  }
  *out = (gm_memory){.handle = (uintptr_t)record, .bytes = bytes, .type = OPENCL_TYPE_DEVICE, .wrapped = true};
  return GM_OK;
}

/* Checked here, since some drivers take any origin: a sub-buffer begins at a multiple of the device's alignment. */
gm_status gm__opencl_view_create(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, uint32_t usage,
                                 uint64_t *out_view, gm_error *err) {
  gm__opencl_device *opened = device;
  const gm__opencl_memory *record = gm__opencl_memory_of(memory);
  const cl_buffer_region region = {(size_t)(record->origin + offset), (size_t)bytes};
  (void)usage;
  if (region.origin % opened->info.alignment) {
    return gm__bad_argument(err, "clCreateSubBuffer",
                            "`offset` %llu, byte %zu of the buffer, is no multiple of the device's alignment %llu",
                            (unsigned long long)offset, region.origin, (unsigned long long)opened->info.alignment);
  }
  if (bytes == 0) return gm__bad_argument(err, "clCreateSubBuffer", "`bytes` must not be 0");
  cl_int code = CL_SUCCESS;
  cl_mem view = opened->cl->clCreateSubBuffer(record->buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
  if (!view) return gm__opencl_device_fail(opened, code, false, "clCreateSubBuffer", err);
  *out_view = (uintptr_t)view;
  return GM_OK;
}

gm_status gm__opencl_view_destroy(void *device, uint64_t view, gm_close_mode mode, gm_error *err) {
  gm__opencl_device *opened = device;
  if (mode == GM_CLOSE_ABANDON) return GM_OK;
  const cl_int code = opened->cl->clReleaseMemObject((cl_mem)(uintptr_t)view);
  return code == CL_SUCCESS ? GM_OK : gm__opencl_device_fail(opened, code, false, "clReleaseMemObject", err);
}
