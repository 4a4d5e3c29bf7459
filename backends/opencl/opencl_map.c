#include "backends/opencl/opencl_entries.h"
#include "backends/opencl/opencl_mem.h"
#include "backends/opencl/opencl_part.h"
#include "backends/opencl/opencl_point.h"
#include "backends/opencl/opencl_queue.h"
#include "core/base/error.h"

/* Mapping is a command of a queue in OpenCL, so the queue orders it. CL_MAP_WRITE_INVALIDATE_REGION excludes the other
 * two flags. */
static cl_map_flags opencl_map_flags(uint32_t mode) {
  if (mode & GM_MAP_READ) return mode & (GM_MAP_WRITE | GM_MAP_DISCARD) ? CL_MAP_READ | CL_MAP_WRITE : CL_MAP_READ;
  return mode & GM_MAP_DISCARD ? CL_MAP_WRITE_INVALIDATE_REGION : CL_MAP_WRITE;
}

/* Is there nothing to map? Fine-grained SVM, a buffer over it and USM have a pointer that is always good, or none. */
static bool opencl_map_is_fine(const gm__opencl_memory *record) {
  return record->host || gm__opencl_kind_is_usm(record->kind);
}

/* The host may use such memory as soon as the stream's work has ended. */
static gm_status opencl_map_unified(gm__opencl_device *device, cl_command_queue queue, const gm__opencl_memory *record,
                                    uint64_t offset, void **out, gm_error *err) {
  if (!record->host) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "opencl", "the host does not see unified memory of the device's own");
  }
  const gm_status status = gm__opencl_point_mark(device, queue, NULL, err);
  if (status == GM_OK) *out = (void *)(record->host + (uintptr_t)offset);
  return status;
}

static gm_status opencl_map_at_once(const gm__opencl_memory *record, uint64_t offset, void **out, gm_error *err) {
  if (!record->host) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "opencl",
                    "GM_MAP_NO_WAIT: OpenCL maps this memory by a command of a queue, which waits");
  }
  *out = (void *)(record->host + (uintptr_t)offset);
  return GM_OK;
}

static cl_int opencl_map_command(const gm__opencl_device *device, cl_command_queue queue,
                                 const gm__opencl_memory *record, const gm__opencl_part *part, uint64_t offset,
                                 uint64_t bytes, cl_map_flags flags, void **out) {
  cl_int code = CL_SUCCESS;
  if (record->pointer) {
    *out = (void *)(record->pointer + (uintptr_t)offset);
    return device->cl->clEnqueueSVMMap(queue, CL_TRUE, flags, *out, (size_t)bytes, 0, NULL, NULL);
  }
  *out = device->cl->clEnqueueMapBuffer(queue, part->buffer, CL_TRUE, flags, (size_t)part->offset, (size_t)bytes, 0,
                                        NULL, NULL, &code);
  return code;
}

/* An unmap names the mapped buffer, so a mapped sub-buffer stays until then. */
static gm_status opencl_map_keep(gm__opencl_device *device, const gm__opencl_part *part, void *pointer, gm_error *err) {
  gm_status status = GM_OK;
  if (!part->view) return GM_OK;
  gm__mutex_lock(&device->lock);
  const bool taken = gm__map_find(&device->mapped, (uintptr_t)pointer, NULL);
  if (!taken) status = gm__map_insert(&device->mapped, (uintptr_t)pointer, (uintptr_t)part->view);
  gm__mutex_unlock(&device->lock);
  if (taken) return gm__fail(err, GM_ERR_BUSY, "map", "the driver maps another range at the same address");
  return status ? gm__fail(err, status, "map", "no host memory for the mapping's record") : GM_OK;
}

/* The sub-buffer that is mapped at the address; NULL: the parent is. `gone`: forget the mapping. */
static cl_mem opencl_map_view(gm__opencl_device *device, const void *pointer, bool gone) {
  uint64_t view = 0;
  gm__mutex_lock(&device->lock);
  gm__map_find(&device->mapped, (uintptr_t)pointer, &view);
  if (gone) gm__map_remove(&device->mapped, (uintptr_t)pointer, NULL);
  gm__mutex_unlock(&device->lock);
  return (cl_mem)(uintptr_t)view;
}

/* Map an open part. A failure closes the part. */
static gm_status opencl_map_part(gm__opencl_device *device, cl_command_queue queue, const gm__opencl_memory *record,
                                 const gm__opencl_part *part, uint64_t offset, uint64_t bytes, cl_map_flags flags,
                                 void **out, gm_error *err) {
  void *pointer = NULL;
  const cl_int code = opencl_map_command(device, queue, record, part, offset, bytes, flags, &pointer);
  gm_status status = GM_OK;
  if (code != CL_SUCCESS || !pointer) {
    status = gm__opencl_device_fail(device, code, true, "clEnqueueMapBuffer", err);
  } else {
    status = opencl_map_keep(device, part, pointer, err);
    if (status != GM_OK) device->cl->clEnqueueUnmapMemObject(queue, part->buffer, pointer, 0, NULL, NULL);
  }
  if (status != GM_OK) {
    gm__opencl_part_close(device, part);
    return status;
  }
  *out = pointer;
  return GM_OK;
}

gm_status gm__opencl_map(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                         uint32_t mode, void **out, gm_error *err) {
  gm__opencl_device *opened = device;
  const gm__opencl_memory *record = gm__opencl_memory_of(memory);
  gm__opencl_queue queue;
  gm__opencl_part part = {.offset = 0};
  if (mode == 0 || bytes == 0) return gm__bad_argument(err, "clEnqueueMapBuffer", "`mode` and `bytes` must not be 0");
  if (mode & GM_MAP_NO_WAIT) return opencl_map_at_once(record, offset, out, err);
  gm_status status = gm__opencl_queue_of(opened, stream, &queue, err);
  if (status == GM_OK) status = gm__opencl_queue_order(opened, &queue, err);
  if (status != GM_OK) return status;
  if (opencl_map_is_fine(record)) return opencl_map_unified(opened, queue.handle, record, offset, out, err);
  if (!record->pointer) {
    status = gm__opencl_part_open(opened, record->buffer, atomic_load(&record->viewed), record->origin + offset, bytes,
                                  &part, err);
    if (status != GM_OK) return status;
  }
  return opencl_map_part(opened, queue.handle, record, &part, offset, bytes, opencl_map_flags(mode), out, err);
}

/* clSVMFree waits for nothing, and on gm's own queue nobody else waits for the unmap before the memory is freed. So gm
 * waits here. A failure of the wait changes nothing: the memory is unmapped. */
static cl_int opencl_unmap_virtual(gm__opencl_device *device, cl_command_queue queue, bool own, void *pointer) {
  cl_event event = NULL;
  const cl_int code = device->cl->clEnqueueSVMUnmap(queue, pointer, 0, NULL, own ? &event : NULL);
  if (code == CL_SUCCESS && event) gm__opencl_point_end(device, queue, event, NULL, NULL);
  return code;
}

gm_status gm__opencl_unmap(void *device, void *stream, const gm_memory *memory, void *pointer, gm_error *err) {
  gm__opencl_device *opened = device;
  const gm__opencl_memory *record = gm__opencl_memory_of(memory);
  gm__opencl_queue queue;
  cl_int code = CL_SUCCESS;
  if (opencl_map_is_fine(record)) return GM_OK;
  const gm_status status = gm__opencl_queue_of(opened, stream, &queue, err);
  if (status != GM_OK) return status;
  if (gm__opencl_kind_is_svm(record->kind)) {
    code = opencl_unmap_virtual(opened, queue.handle, !stream, pointer);
  } else if (record->buffer) {
    const cl_mem view = opencl_map_view(opened, pointer, false);
    code = opened->cl->clEnqueueUnmapMemObject(queue.handle, view ? view : record->buffer, pointer, 0, NULL, NULL);
    if (code == CL_SUCCESS && view) opened->cl->clReleaseMemObject(opencl_map_view(opened, pointer, true));
  }
  if (code != CL_SUCCESS) return gm__opencl_device_fail(opened, code, false, "clEnqueueUnmapMemObject", err);
  return gm__opencl_queue_order(opened, &queue, err);
}
