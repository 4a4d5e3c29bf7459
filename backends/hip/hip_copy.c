#include "backends/hip/hip_copy.h"

/* The kind says where the bytes are; memory that the host reaches too is left to the runtime, which knows its own. */

hipMemcpyKind gm__hip_copy_kind(bool from_host, bool to_host) {
  if (from_host) return to_host ? hipMemcpyHostToHost : hipMemcpyHostToDevice;
  return to_host ? hipMemcpyDeviceToHost : hipMemcpyDeviceToDevice;
}

hipError_t gm__hip_copy_enqueue(const gm__hip_device *device, hipStream_t stream, uint64_t to, uint64_t from,
                                uint64_t bytes, hipMemcpyKind kind) {
  if (bytes == 0) return hipSuccess;
  return device->hip->hipMemcpyAsync((void *)(uintptr_t)to, (const void *)(uintptr_t)from, (size_t)bytes, kind, stream);
}

gm_status gm__hip_copy_to_device(void *device, void *stream, const gm_memory *dst, uint64_t offset, const void *src,
                                 uint64_t bytes, gm_backend_point *out, gm_error *err) {
  gm__hip_job job;
  const hipMemcpyKind kind = dst->host ? hipMemcpyDefault : hipMemcpyHostToDevice;
  const gm_status status = gm__hip_begin(device, stream, &job, err);
  if (status != GM_OK) return status;
  const hipError_t code =
      gm__hip_copy_enqueue(device, job.stream, dst->address + offset, (uint64_t)(uintptr_t)src, bytes, kind);
  return gm__hip_end(device, &job, code, "hipMemcpyAsync", out, err);
}

gm_status gm__hip_copy_to_host(void *device, void *stream, const gm_memory *src, uint64_t offset, void *dst,
                               uint64_t bytes, gm_backend_point *out, gm_error *err) {
  gm__hip_job job;
  const hipMemcpyKind kind = src->host ? hipMemcpyDefault : hipMemcpyDeviceToHost;
  const gm_status status = gm__hip_begin(device, stream, &job, err);
  if (status != GM_OK) return status;
  const hipError_t code =
      gm__hip_copy_enqueue(device, job.stream, (uint64_t)(uintptr_t)dst, src->address + offset, bytes, kind);
  return gm__hip_end(device, &job, code, "hipMemcpyAsync", out, err);
}

gm_status gm__hip_copy(void *device, void *stream, const gm_copy_item *item, gm_backend_point *out, gm_error *err) {
  return gm__hip_copy_many(device, stream, item, 1, out, err);
}

gm_status gm__hip_copy_many(void *device, void *stream, const gm_copy_item *items, uint32_t count,
                            gm_backend_point *out, gm_error *err) {
  gm__hip_job job;
  hipError_t code = hipSuccess;
  const gm_status status = gm__hip_begin(device, stream, &job, err);
  if (status != GM_OK) return status;
  for (uint32_t i = 0; i < count && code == hipSuccess; i++) {
    const gm_memory *src = items[i].src, *dst = items[i].dst;
    const hipMemcpyKind kind = src->host || dst->host ? hipMemcpyDefault : hipMemcpyDeviceToDevice;
    code = gm__hip_copy_enqueue(device, job.stream, dst->address + items[i].dst_offset,
                                src->address + items[i].src_offset, items[i].bytes, kind);
  }
  return gm__hip_end(device, &job, code, "hipMemcpyAsync", out, err);
}
