/* Adoption of an engine's VkDevice. gm creates no queue on it and destroys nothing of it. */
#include <string.h>

#include "backends/shared/native.h"
#include "backends/vulkan/vulkan_device_open.h"
#include "backends/vulkan/vulkan_entries.h"
#include "backends/vulkan/vulkan_timeline.h"
#include "core/base/error.h"

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
  if (native->buffer_usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT &&
      !(native->features & GM_VULKAN_BUFFER_DEVICE_ADDRESS)) {
    return gm__bad_argument(err, adopt_op,
                            "`native`: buffer_usage has SHADER_DEVICE_ADDRESS_BIT, and features has no "
                            "GM_VULKAN_BUFFER_DEVICE_ADDRESS");
  }
  return adopt_check_families(native, err);
}

/* 0 is what gm did before the engine could say it. Vulkan forbids buffers that one family shares with nobody. */
static gm_status adopt_sharing(const gm_vulkan_device *native, bool *out, gm_error *err) {
  const bool many = native->queue_family_count > 1;
  switch (native->sharing) {
    case GM_VULKAN_SHARING_BY_FAMILIES: *out = many; return GM_OK;
    case GM_VULKAN_SHARING_EXCLUSIVE: *out = false; return GM_OK;
    case GM_VULKAN_SHARING_CONCURRENT:
      *out = true;
      if (many) return GM_OK;
      return gm__bad_argument(err, adopt_op, "`native`: sharing is CONCURRENT, and queue_families has one family only");
  }
  return gm__bad_argument(err, adopt_op, "`native`: sharing is %u, none of gm_vulkan_sharing",
                          (unsigned)native->sharing);
}

/* gm counts the bytes of a listed card in the driver's list, so that figures by index contain them. */
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
  return gm__vulkan_physical_usable(&device->physical, gm__vulkan_has_timelines(device), err);
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
  device->usage = native->buffer_usage & ~(VkBufferUsageFlags)VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  device->family_count = native->queue_family_count;
  memcpy(device->families, native->queue_families, device->family_count * sizeof *device->families);
  status = adopt_sharing(native, &device->concurrent, err);
  if (!status) status = adopt_entries(device, native, err);
  if (!status) status = adopt_physical(device, native, err);
  if (!status) status = gm__vulkan_device_ready(device, err);
  if (status) {
    gm__vulkan_device_close(device, GM_CLOSE_NORMAL);
    return status;
  }
  device->heaps = adopt_heaps(driver, device);
  if (driver->lib) gm__dynlib_keep(driver->lib);
  *out_device = device;
  return GM_OK;
}

gm_status gm__vulkan_device_adopt_alone(const gm_backend_host *host, const gm_native_device *given, void **out_device,
                                        gm_error *err) {
  gm_vulkan_device native;
  gm__vulkan_driver *driver = NULL;
  gm_status status = gm__native_in(&native, sizeof native, given, GM_API_VULKAN, adopt_op, "native", err);
  if (status) return status;
  if (!native.get_instance_proc) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_backend_ops.device_adopt_alone", "`get_instance_proc` is 0");
  }
  status = gm__vulkan_driver_alone(host, &driver, err);
  if (status) return status;
  status = gm__vulkan_device_adopt(driver, given, out_device, err);
  if (status) {
    gm__vulkan_fini(driver, GM_CLOSE_NORMAL);
    return status;
  }
  ((gm__vulkan_device *)*out_device)->alone = true;
  return GM_OK;
}
