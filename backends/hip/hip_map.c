#include "backends/hip/hip_map.h"

#include "core/base/error.h"

gm_status gm__hip_map(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                      uint32_t mode, void **out, gm_error *err) {
  gm__hip_job job;
  if (mode == 0 || bytes == 0) return gm__bad_argument(err, "hip", "`mode` and `bytes` must not be 0");
  if (!memory->host) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "hip",
                    "HIP maps no device memory into the host: take memory of a host-visible type, or copy");
  }
  gm_status status = gm__hip_begin(device, stream, &job, err);
  if (status == GM_OK) status = gm__hip_end(device, &job, hipSuccess, "hipStreamSynchronize", NULL, err);
  if (status == GM_OK) *out = (unsigned char *)memory->host + offset;
  return status;
}

/* What the host wrote before work is submitted, that work sees. */
gm_status gm__hip_unmap(void *device, void *stream, const gm_memory *memory, void *pointer, gm_error *err) {
  (void)device;
  (void)stream;
  (void)memory;
  (void)pointer;
  (void)err;
  return GM_OK;
}

gm_status gm__hip_map_sync(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, gm_error *err) {
  (void)device;
  (void)memory;
  (void)offset;
  (void)bytes;
  (void)err;
  return GM_OK;
}
