#include "backends/shared/vmm_try.h"

/* Map, open and unmap. */
static gm_status vmm_try_map(const gm_backend_ops *ops, void *device, uint64_t address, uint64_t bytes,
                             uint64_t handle) {
  gm_status status = ops->vmm_map(device, address, bytes, handle, 0, NULL);
  if (status != GM_OK) return status;
  status = ops->vmm_access(device, address, bytes, NULL);
  const gm_status unmapped = ops->vmm_unmap(device, address, bytes, NULL);
  return status == GM_OK ? unmapped : status;
}

static gm_status vmm_try_once(const gm_backend_ops *ops, void *device) {
  const gm_vmm_props props = {.type = 0};
  uint64_t bytes = 0, address = 0, handle = 0;
  gm_status status = ops->vmm_granularity(device, &props, &bytes, NULL);
  if (status == GM_OK) status = ops->vmm_reserve(device, bytes, 0, &address, NULL);
  if (status != GM_OK) return status;
  status = ops->vmm_create(device, &props, bytes, &handle, NULL);
  if (status == GM_OK) {
    status = vmm_try_map(ops, device, address, bytes, handle);
    ops->vmm_destroy(device, handle, bytes, GM_CLOSE_NORMAL, NULL);
  }
  ops->vmm_unreserve(device, address, bytes, GM_CLOSE_NORMAL, NULL);
  return status;
}

void gm__vmm_try(const gm_backend_ops *ops, void *device, gm_device_info *info) {
  if (!(info->capabilities & GM_CAP_VMM)) return;
  const gm_status status = vmm_try_once(ops, device);
  if (status != GM_OK && status != GM_ERR_OUT_OF_DEVICE_MEMORY) info->capabilities &= ~(uint64_t)GM_CAP_VMM;
}
