/* Adoption of an engine's VkDevice: gm creates no queue on it and destroys nothing of it. */
#include <string.h>

#include "backends/vulkan/vulkan_device.h"
#include "core/base/error.h"
#include "core/base/native.h"

static const char adopt_op[] = "gm_backend_ops.device_adopt";

static gm_status adopt_check_families(const gm_vulkan_device *native, gm_error *err) {
  uint32_t count = native->queue_family_count;
  if (!native->queue_families || count < 1 || count > VULKAN_MAX_FAMILIES) {
    return gm__bad_argument(err, adopt_op, "`native`: queue_families must list 1 to %d families, has %u",
                            VULKAN_MAX_FAMILIES, native->queue_families ? count : 0);
  }
  for (uint32_t i = 0; i < count; i++) {
    for (uint32_t j = 0; j < i; j++) {
      if (native->queue_families[i] != native->queue_families[j]) continue;
      return gm__bad_argument(err, adopt_op, "`native`: queue family %u is listed twice", native->queue_families[i]);
    }
  }
  return GM_OK;
}

static gm_status adopt_check(const gm_native_device *given, gm_vulkan_device *native, gm_error *err) {
  const gm_status status = gm__native_in(native, sizeof *native, given, GM_API_VULKAN, adopt_op, "native", err);
  if (status) return status;
  if (!native->instance || !native->physical_device || !native->device) {
    return gm__bad_argument(err, adopt_op, "`native` needs instance, physical_device and device; one of them is 0");
  }
  if (native->api_version < VK_API_VERSION_1_1) {
    return gm__bad_argument(err, adopt_op,
                            "`native`: api_version is %u.%u, gm needs an instance created for Vulkan 1.1 or later",
                            VK_API_VERSION_MAJOR(native->api_version), VK_API_VERSION_MINOR(native->api_version));
  }
  if (!(native->features & GM_VULKAN_TIMELINE_SEMAPHORE)) {
    return gm__bad_argument(err, adopt_op,
                            "`native`: features lack GM_VULKAN_TIMELINE_SEMAPHORE: enable timelineSemaphore on the "
                            "VkDevice");
  }
  return adopt_check_families(native, err);
}

/* The card's bytes are counted with the driver's own list, so that figures by index contain them. */
static gm__vulkan_heaps *adopt_heaps(gm__vulkan_driver *driver, gm__vulkan_device *device) {
  for (uint32_t i = 0; i < driver->physical_count; i++) {
    const gm__vulkan_physical *listed = &driver->physicals[i];
    bool same = !memcmp(listed->uuid, device->physical.uuid, sizeof listed->uuid) &&
                listed->driver == device->physical.driver &&
                listed->memory.memoryHeapCount == device->physical.memory.memoryHeapCount;
    if (same) return &driver->heaps[i];
  }
  return &device->own_heaps;
}

static gm_status adopt_entries(gm__vulkan_device *device, const gm_vulkan_device *native, gm_error *err) {
  const gm__vulkan_driver *driver = device->driver;
  gm_status status = GM_OK;
  device->syms.vkGetInstanceProcAddr = driver->syms.vkGetInstanceProcAddr;
  if (native->get_instance_proc) {
    PFN_vkGetInstanceProcAddr entry = (PFN_vkGetInstanceProcAddr)native->get_instance_proc;
    status = gm__vulkan_syms_engine(&device->syms, entry, driver->host, err);
  }
  if (!status) status = gm__vulkan_syms_instance(&device->syms, device->instance, driver->host, err);
  return status;
}

static gm_status adopt_physical(gm__vulkan_device *device, const gm_vulkan_device *native, gm_error *err) {
  VkPhysicalDevice handle = (VkPhysicalDevice)native->physical_device;
  gm_status status =
      gm__vulkan_physical_read(&device->syms, device->services, handle, native->api_version, &device->physical, err);
  if (status) return status;
  for (uint32_t i = 0; i < device->family_count; i++) {
    if (device->families[i] < device->physical.family_count) continue;
    return gm__bad_argument(err, adopt_op, "`native`: queue family %u does not exist, the device has %u",
                            device->families[i], device->physical.family_count);
  }
  return gm__vulkan_physical_usable(&device->physical, err);
}

gm_status gm__vulkan_device_adopt(void *user, const gm_native_device *given, void **out_device, gm_error *err) {
  gm__vulkan_driver *driver = user;
  gm_vulkan_device lent;
  const gm_vulkan_device *native = &lent;
  gm_status status = adopt_check(given, &lent, err);
  if (status) return status;
  gm__vulkan_device *device = gm__vulkan_device_make(driver, err);
  if (!device) return GM_ERR_OUT_OF_HOST_MEMORY;
  device->adopted = true;
  device->instance = (VkInstance)native->instance;
  device->handle = (VkDevice)native->device;
  device->features = native->features;
  device->family_count = native->queue_family_count;
  memcpy(device->families, native->queue_families, device->family_count * sizeof *device->families);
  status = adopt_entries(device, native, err);
  if (!status) status = adopt_physical(device, native, err);
  if (!status) status = gm__vulkan_device_ready(device, err);
  if (status) {
    gm__vulkan_device_close(device, GM_CLOSE_NORMAL);
    return status;
  }
  device->heaps = adopt_heaps(driver, device);
  gm__dynlib_keep(driver->lib);
  *out_device = device;
  return GM_OK;
}
