#include "backends/opencl/opencl_mem.h"

#include "backends/opencl/opencl_entries.h"
#include "backends/shared/native.h"
#include "core/base/error.h"
#include "core/base/sized.h"

static gm_opencl_memory opencl_mem_describe(const gm__opencl_memory *record, uint64_t offset, uint64_t bytes) {
  return (gm_opencl_memory){.memory = record->pointer ? 0 : (uintptr_t)record->buffer,
                            .offset = record->pointer ? 0 : record->origin + offset,
                            .bytes = bytes,
                            .pointer = record->pointer ? record->pointer + (uintptr_t)offset : 0,
                            .unified = gm__opencl_kind_is_usm(record->kind),
                            .memory_bytes = record->pointer ? 0 : record->whole};
}

gm_status gm__opencl_memory_native(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                   gm_native_memory *out, gm_error *err) {
  (void)device;
  gm_opencl_memory native = opencl_mem_describe(gm__opencl_memory_of(memory), offset, bytes);
  const gm_status status = gm__native_check(out, sizeof native, GM_API_OPENCL, "opencl", "out", err);
  if (status != GM_OK) return status;
  native.head = *out;
  gm__sized_out(out, &native, sizeof native);
  return GM_OK;
}

gm_status gm__opencl_view_native(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, uint64_t view,
                                 gm_native_memory *out, gm_error *err) {
  (void)device;
  gm_opencl_memory native = opencl_mem_describe(gm__opencl_memory_of(memory), offset, bytes);
  const gm_status status = gm__native_check(out, sizeof native, GM_API_OPENCL, "opencl", "out", err);
  if (status != GM_OK) return status;
  const bool whole = native.memory && native.offset == 0 && native.memory_bytes == bytes;
  native.head = *out;
  native.view = whole && !view ? native.memory : (uintptr_t)view;
  if (!native.pointer && !native.view) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "opencl", "the range is a part of a buffer, and needs a sub-buffer");
  }
  gm__sized_out(out, &native, sizeof native);
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

/* A sub-buffer begins at a multiple of the device's alignment. gm checks it here, because some drivers take any origin.
 */
gm_status gm__opencl_view_create(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, uint32_t usage,
                                 uint64_t *out_view, gm_error *err) {
  gm__opencl_device *opened = device;
  const gm__opencl_memory *record = gm__opencl_memory_of(memory);
  const cl_buffer_region region = {(size_t)(record->origin + offset), (size_t)bytes};
  (void)usage;
  if (!record->buffer) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "clCreateSubBuffer",
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
  return gm__opencl_check(opened, code, "clReleaseMemObject", err);
}
