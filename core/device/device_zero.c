#include <string.h>

#include "core/base/error.h"
#include "core/device/stream.h"

gm_status gm__device_zero(gm_device *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, gm_error *err) {
  if (memory->host) {
    memset((unsigned char *)memory->host + offset, 0, bytes);
    return GM_OK;
  }
  gm_stream *stream;
  gm_status status = gm__device_default_stream(device, "gm_alloc", &stream, err);
  if (status) return status;
  return gm__submitting(device)->fill(device->handle, stream->handle, memory, offset, bytes, "", 1, NULL, err);
}

bool gm__is_shortage(gm_status status) {
  return status == GM_ERR_OVER_LIMIT || status == GM_ERR_OUT_OF_DEVICE_MEMORY || status == GM_ERR_PINNED_LIMIT ||
         status == GM_ERR_ALLOCATION_TOO_LARGE;
}
