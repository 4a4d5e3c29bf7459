#include "backends/cuda/cuda_copy.h"

#include "backends/cuda/cuda_mem.h"

/* The calls that say where the bytes are go with memory of the device; cuMemcpyAsync, which finds out from the address,
 * with memory that the host has too. */

static CUresult cuda_copy_in(const gm__cuda_device *device, CUstream stream, const gm_memory *dst, uint64_t offset,
                             const void *src, uint64_t bytes) {
  const CUdeviceptr to = dst->address + offset;
  if (bytes == 0) return CUDA_SUCCESS;
  if (dst->host) return device->cu->cuMemcpyAsync(to, (CUdeviceptr)(uintptr_t)src, (size_t)bytes, stream);
  return device->cu->cuMemcpyHtoDAsync_v2(to, src, (size_t)bytes, stream);
}

static CUresult cuda_copy_out(const gm__cuda_device *device, CUstream stream, const gm_memory *src, uint64_t offset,
                              void *dst, uint64_t bytes) {
  const CUdeviceptr from = src->address + offset;
  if (bytes == 0) return CUDA_SUCCESS;
  if (src->host) return device->cu->cuMemcpyAsync((CUdeviceptr)(uintptr_t)dst, from, (size_t)bytes, stream);
  return device->cu->cuMemcpyDtoHAsync_v2(dst, from, (size_t)bytes, stream);
}

CUresult gm__cuda_copy_enqueue(const gm__cuda_device *device, CUstream stream, const gm_copy_item *item) {
  const CUdeviceptr to = item->dst->address + item->dst_offset, from = item->src->address + item->src_offset;
  if (item->bytes == 0) return CUDA_SUCCESS;
  if (item->src->host || item->dst->host) return device->cu->cuMemcpyAsync(to, from, (size_t)item->bytes, stream);
  return device->cu->cuMemcpyDtoDAsync_v2(to, from, (size_t)item->bytes, stream);
}

gm_status gm__cuda_copy_to_device(void *device, void *stream, const gm_memory *dst, uint64_t offset, const void *src,
                                  uint64_t bytes, gm_backend_point *out, gm_error *err) {
  gm__cuda_job job;
  const gm_status status = gm__cuda_begin(device, stream, &job, err);
  if (status != GM_OK) return status;
  const CUresult code = cuda_copy_in(device, job.stream, dst, offset, src, bytes);
  return gm__cuda_end(device, &job, code, "cuMemcpyHtoDAsync", out, err);
}

gm_status gm__cuda_copy_to_host(void *device, void *stream, const gm_memory *src, uint64_t offset, void *dst,
                                uint64_t bytes, gm_backend_point *out, gm_error *err) {
  gm__cuda_job job;
  const gm_status status = gm__cuda_begin(device, stream, &job, err);
  if (status != GM_OK) return status;
  const CUresult code = cuda_copy_out(device, job.stream, src, offset, dst, bytes);
  return gm__cuda_end(device, &job, code, "cuMemcpyDtoHAsync", out, err);
}

gm_status gm__cuda_copy(void *device, void *stream, const gm_copy_item *item, gm_backend_point *out, gm_error *err) {
  return gm__cuda_copy_many(device, stream, item, 1, out, err);
}

gm_status gm__cuda_copy_many(void *device, void *stream, const gm_copy_item *items, uint32_t count,
                             gm_backend_point *out, gm_error *err) {
  gm__cuda_job job;
  CUresult code = CUDA_SUCCESS;
  const gm_status status = gm__cuda_begin(device, stream, &job, err);
  if (status != GM_OK) return status;
  for (uint32_t i = 0; i < count && code == CUDA_SUCCESS; i++) {
    code = gm__cuda_copy_enqueue(device, job.stream, &items[i]);
  }
  return gm__cuda_end(device, &job, code, "cuMemcpyDtoDAsync", out, err);
}
