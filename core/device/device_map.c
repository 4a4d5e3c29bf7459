#include "core/base/error.h"
#include "core/device/device_alloc.h"
#include "core/device/memory_answer.h"

gm_status gm__device_map_for_life(const gm_device *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                  void **out, gm_error *err) {
  const uint32_t mode = GM_MAP_READ | GM_MAP_WRITE | GM_MAP_NO_WAIT;
  void *pointer = NULL;
  if (memory->host) {
    *out = (unsigned char *)memory->host + offset;
    return GM_OK;
  }
  const gm_backend_ops *ops = gm__submitting(device);
  gm_status status = ops->map(device->handle, NULL, memory, offset, bytes, mode, &pointer, err);
  status = gm__answer_check_word(device, "map", status, (uintptr_t)pointer, err);
  if (!status) status = ops->unmap(device->handle, NULL, memory, pointer, err);
  if (!status) *out = pointer;
  return status;
}
