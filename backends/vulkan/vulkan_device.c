#include "backends/vulkan/vulkan_device.h"

#include "backends/shared/native.h"
#include "backends/vulkan/vulkan_entries.h"
#include "backends/vulkan/vulkan_status.h"
#include "core/base/error.h"
#include "core/base/sized.h"

/* The brackets keep the analysers' macro of the same name out of the definition. */
gm_status(gm__vulkan_device_fail)(gm__vulkan_device *device, VkResult result, const char *op, gm_error *err) {
  if (result == VK_ERROR_DEVICE_LOST) atomic_store(&device->lost, true);
  return gm__vulkan_fail(result, op, err);
}

gm_status gm__vulkan_device_state(void *user, gm_error *err) {
  gm__vulkan_device *device = user;
  if (!atomic_load(&device->lost)) return GM_OK;
  return gm__fail_native(
      err, GM_ERR_DEVICE_LOST, VK_ERROR_DEVICE_LOST, "gm_backend_ops.device_state",
      "the Vulkan driver has answered VK_ERROR_DEVICE_LOST for %.100s; close the device and open it again",
      device->physical.props.deviceName);
}

gm_status gm__vulkan_device_native(void *user, gm_native_device *out, gm_error *err) {
  const gm__vulkan_device *device = user;
  const gm_status status =
      gm__native_check(out, sizeof(gm_vulkan_device), GM_API_VULKAN, "gm_backend_ops.device_native", "out", err);
  if (status) return status;
  const gm_vulkan_device told = {
      .head = *out,
      .instance = (uintptr_t)device->instance,
      .physical_device = (uintptr_t)device->physical.handle,
      .device = (uintptr_t)device->handle,
      .get_instance_proc = (uintptr_t)device->syms.vkGetInstanceProcAddr,
      .api_version = device->physical.version,
      .features = device->features,
      .queue_families = device->families,
      .queue_family_count = device->family_count,
      .sharing = device->concurrent ? GM_VULKAN_SHARING_CONCURRENT : GM_VULKAN_SHARING_EXCLUSIVE,
      .buffer_usage = device->usage};
  gm__sized_out(out, &told, sizeof told);
  return GM_OK;
}
