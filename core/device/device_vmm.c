#include "core/device/device_vmm.h"

#include "core/base/error.h"

gm_status gm__device_create_physical(gm_device *device, uint32_t type, uint64_t bytes, uint64_t *out_handle,
                                     gm_error *err) {
  const gm_vmm_props props = {.type = type, .exclusive = true};
  uint64_t handle = 0;
  gm_status status = device->ops->vmm_create(device->handle, &props, bytes, &handle, err);
  if (status == GM_OK && handle == 0) {
    status = gm__fail(err, GM_ERR_DRIVER, 0, "vmm_create", "backend %s answered success without the memory",
                      device->info.backend);
  }
  if (status == GM_ERR_DEVICE_LOST) atomic_store(&device->lost, true);
  if (status != GM_OK) return status;
  gm__used_add(device->used, bytes, false);
  atomic_fetch_add_explicit(&device->own_bytes, bytes, memory_order_relaxed);
  *out_handle = handle;
  return GM_OK;
}

void gm__device_destroy_physical(gm_device *device, uint64_t handle, uint64_t bytes) {
  if (gm__context_forked(device->ctx)) {
    device->ops->vmm_destroy(device->handle, handle, bytes, GM_CLOSE_ABANDON, NULL);
    return;
  }
  gm__device_leave(device, bytes);
  device->ops->vmm_destroy(device->handle, handle, bytes, GM_CLOSE_NORMAL, NULL);
  gm__used_left(device->used, bytes);
}
