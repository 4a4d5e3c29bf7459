#include "backends/vulkan/vulkan_device_open.h"

#include "backends/shared/plain.h"
#include "backends/vulkan/vulkan_command.h"
#include "backends/vulkan/vulkan_entries.h"
#include "backends/vulkan/vulkan_host.h"
#include "backends/vulkan/vulkan_status.h"
#include "backends/vulkan/vulkan_table.h"
#include "core/base/alloc.h"
#include "core/base/error.h"

/* Invariants: on an adopted device gm destroys only its own objects. Timelines live as long as the device, so a point
 * stays valid after its stream has closed. A lost device stays lost, and everything on it can still be freed. */

gm__vulkan_device *gm__vulkan_device_make(gm__vulkan_driver *driver, gm_error *err) {
  gm__vulkan_device *device = gm__alloc(driver->services, sizeof *device);
  if (!device) {
    gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_backend_ops.device_open", "no host memory for a vulkan device");
    return NULL;
  }
  device->driver = driver;
  device->services = driver->services;
  device->heaps = &device->own_heaps;
  gm__mutex_init(&device->mutex, GM__RANK_BACKEND);
  gm__cond_init(&device->staging.given);
  gm__vulkan_sparse_init(&device->sparse);
  return device;
}

static void device_release(gm__vulkan_device *device) {
  gm__vulkan_sparse_destroy(&device->sparse);
  gm__cond_destroy(&device->staging.given);
  gm__mutex_destroy(&device->mutex);
  gm__release(device->services, device, sizeof *device);
}

static uint32_t device_extensions(const gm__vulkan_physical *physical, const char *out[7]) {
  uint32_t count = 0;
  if (physical->timeline_ext) out[count++] = VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME;
  if (physical->address_ext) out[count++] = VK_KHR_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME;
  if (physical->budget) out[count++] = VK_EXT_MEMORY_BUDGET_EXTENSION_NAME;
  if (physical->fd) out[count++] = VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME;
  if (physical->dmabuf) out[count++] = VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME;
  if (physical->priority) out[count++] = VK_EXT_MEMORY_PRIORITY_EXTENSION_NAME;
  if (physical->host_align) out[count++] = VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME;
  return count;
}

/* One queue for the work. Where its family cannot bind sparse memory, one more queue of a family that can. */
static uint32_t device_queues(const gm__vulkan_physical *physical, VkDeviceQueueCreateInfo out[2]) {
  static const float priority = 1.0f;
  const uint32_t families[2] = {physical->family, physical->sparse_family};
  const uint32_t count = physical->sparse && families[0] != families[1] ? 2 : 1;
  for (uint32_t i = 0; i < count; i++) {
    out[i] = (VkDeviceQueueCreateInfo){.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                       .queueFamilyIndex = families[i],
                                       .queueCount = 1,
                                       .pQueuePriorities = &priority};
  }
  return count;
}

static VkResult device_create(const gm__vulkan_driver *driver, const gm__vulkan_physical *physical, VkDevice *out) {
  VkDeviceQueueCreateInfo queues[2];
  const char *extensions[7];
  VkPhysicalDeviceMemoryPriorityFeaturesEXT priority = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PRIORITY_FEATURES_EXT, .memoryPriority = VK_TRUE};
  VkPhysicalDeviceBufferDeviceAddressFeatures address = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES,
      .pNext = physical->priority ? &priority : NULL,
      .bufferDeviceAddress = VK_TRUE};
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
      .pNext = physical->address ? &address : address.pNext,
      .timelineSemaphore = VK_TRUE};
  const VkPhysicalDeviceFeatures sparse = {.sparseBinding = VK_TRUE, .sparseResidencyBuffer = VK_TRUE};
  const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                   .pNext = &timeline,
                                   .queueCreateInfoCount = device_queues(physical, queues),
                                   .pQueueCreateInfos = queues,
                                   .enabledExtensionCount = device_extensions(physical, extensions),
                                   .ppEnabledExtensionNames = extensions,
                                   .pEnabledFeatures = physical->sparse ? &sparse : NULL};
  return driver->syms.vkCreateDevice(physical->handle, &info, NULL, out);
}

static void device_destroy_handle(gm__vulkan_device *device) {
  PFN_vkDestroyDevice destroy = device->syms.vkDestroyDevice;
  if (!destroy) {
    destroy = (PFN_vkDestroyDevice)device->syms.vkGetDeviceProcAddr(device->handle, "vkDestroyDevice");
  }
  if (destroy) destroy(device->handle, NULL);
}

/* A buffer of gm's tells which memory types can lie behind it, and how views must be aligned. */
static gm_status device_ask_buffer(gm__vulkan_device *device, gm_error *err) {
  const gm__vulkan_buffer_params params = {.bytes = 65536};
  gm__vulkan_needs needs;
  gm_status status = gm__vulkan_buffer_ask(device, &params, &needs, err);
  if (status) return status;
  device->alignment = gm__vulkan_alignment(&device->physical, needs.alignment);
  device->type_count =
      gm__vulkan_types_list(&device->physical, needs.type_bits, device->driver->no_host_visible, device->types);
  if (device->type_count) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, "vkGetBufferMemoryRequirements2", "%.100s has no memory type for buffers",
                  device->physical.props.deviceName);
}

/* A way of sharing counts only when the driver can make a buffer for it. */
static void device_ask_share(gm__vulkan_device *device, gm_share_kind kind, uint32_t needed) {
  gm__vulkan_sharing can = device->physical.sharing[kind];
  const gm__vulkan_buffer_params params = {.bytes = 65536, .share = kind};
  gm__vulkan_needs needs;
  if ((device->features & needed) != needed || !device->syms.vkGetMemoryFdKHR || (!can.exports && !can.imports)) return;
  if (kind == GM_SHARE_DMABUF && !device->syms.vkGetMemoryFdPropertiesKHR) return;
  if (device->usage) {
    const VkBufferUsageFlags usage = gm__vulkan_buffer_usage(device->address) | device->usage;
    can = gm__vulkan_ask_sharing(&device->syms, &device->physical, gm__vulkan_handle_type(kind), usage);
    if (!can.exports && !can.imports) return;
  }
  if (gm__vulkan_buffer_ask(device, &params, &needs, NULL)) return;
  device->shares[kind] = (gm__vulkan_shares){can, needs.type_bits};
}

static void device_ask_shares(gm__vulkan_device *device) {
  device_ask_share(device, GM_SHARE_FD, GM_VULKAN_EXTERNAL_MEMORY_FD);
  device_ask_share(device, GM_SHARE_DMABUF, GM_VULKAN_EXTERNAL_MEMORY_FD | GM_VULKAN_EXTERNAL_MEMORY_DMA_BUF);
}

/* Timeline semaphores need entries that a device without them does not have. */
static gm_status device_check_entries(const gm__vulkan_device *device, gm_error *err) {
  const bool has = device->syms.vkGetSemaphoreCounterValue && device->syms.vkWaitSemaphores;
  if (has || !gm__vulkan_has_timelines(device)) return GM_OK;
  return gm__fail(err, GM_ERR_UNAVAILABLE, "vkGetDeviceProcAddr",
                  "the Vulkan device has no entry %s, which GM_VULKAN_TIMELINE_SEMAPHORE needs",
                  device->syms.vkWaitSemaphores ? "vkGetSemaphoreCounterValue" : "vkWaitSemaphores");
}

gm_status gm__vulkan_device_ready(gm__vulkan_device *device, gm_error *err) {
  gm_status status = gm__vulkan_syms_device(&device->syms, device->handle, device->driver->host, err);
  if (!status) status = device_check_entries(device, err);
  if (status) return status;
  device->address = device->features & GM_VULKAN_BUFFER_DEVICE_ADDRESS && device->syms.vkGetBufferDeviceAddress;
  status = device_ask_buffer(device, err);
  if (status) return status;
  device_ask_shares(device);
  gm__vulkan_host_ask(device);
  gm__vulkan_sparse_ask(device);
  return GM_OK;
}

/* The features that gm enables on its own device. */
static uint32_t device_own_features(const gm__vulkan_physical *physical) {
  uint32_t features = GM_VULKAN_TIMELINE_SEMAPHORE | GM_VULKAN_DEDICATED_ALLOCATION;
  if (physical->budget) features |= GM_VULKAN_MEMORY_BUDGET;
  if (physical->address) features |= GM_VULKAN_BUFFER_DEVICE_ADDRESS;
  if (physical->fd) features |= GM_VULKAN_EXTERNAL_MEMORY_FD;
  if (physical->dmabuf) features |= GM_VULKAN_EXTERNAL_MEMORY_DMA_BUF;
  if (physical->sparse) features |= GM_VULKAN_SPARSE_BUFFERS;
  if (physical->priority) features |= GM_VULKAN_MEMORY_PRIORITY;
  if (physical->host_align) features |= GM_VULKAN_EXTERNAL_MEMORY_HOST;
  return features;
}

gm_status gm__vulkan_device_open(void *user, uint32_t index, void **out_device, gm_error *err) {
  gm__vulkan_driver *driver = user;
  gm_status status = gm__plain_check_index("gm_backend_ops.device_open", driver->physical_count, index, err);
  if (!status) status = gm__vulkan_physical_usable(&driver->physicals[index], true, err);
  if (status) return status;
  gm__vulkan_device *device = gm__vulkan_device_make(driver, err);
  if (!device) return GM_ERR_OUT_OF_HOST_MEMORY;
  device->syms = driver->syms;
  device->physical = driver->physicals[index];
  device->heaps = &driver->heaps[index];
  device->instance = driver->instance;
  device->features = device_own_features(&device->physical);
  device->families[0] = device->physical.family;
  device->family_count = 1;
  VkResult result = device_create(driver, &device->physical, &device->handle);
  if (result || !device->handle) {
    device_release(device);
    return gm__vulkan_fail(result, "vkCreateDevice", err);
  }
  gm__dynlib_keep(driver->lib);
  status = gm__vulkan_device_ready(device, err);
  if (status) {
    gm__vulkan_device_close(device, GM_CLOSE_NORMAL);
    return status;
  }
  *out_device = device;
  return GM_OK;
}

/* Wait for the last value of every timeline. */
static void device_settle(gm__vulkan_device *device) {
  for (gm__vulkan_timeline *timeline = device->timelines; timeline; timeline = timeline->next) {
    const gm_backend_point last = gm__vulkan_timeline_point(timeline, timeline->last);
    gm__vulkan_point_wait(device, &last, UINT64_MAX, NULL);
  }
}

/* Destroy gm's objects on the device, in the reverse order of their making. */
static void device_clear(gm__vulkan_device *device) {
  device_settle(device);
  gm__vulkan_kernels_clear(device);
  gm__vulkan_staging_clear(device, GM_CLOSE_NORMAL);
  gm__vulkan_table_clear(device, GM_CLOSE_NORMAL);
  gm__vulkan_command_clear(device);
  gm__vulkan_timelines_clear(device);
}

void gm__vulkan_device_close(void *user, gm_close_mode mode) {
  gm__vulkan_device *device = user;
  if (!device) return;
  gm__vulkan_driver *own = device->alone ? device->driver : NULL;
  if (mode == GM_CLOSE_NORMAL) {
    device_clear(device);
    if (!device->adopted) device_destroy_handle(device);
  }
  gm__vulkan_kernels_forget(device);
  gm__vulkan_staging_clear(device, GM_CLOSE_ABANDON);
  gm__vulkan_table_clear(device, GM_CLOSE_ABANDON);
  gm__vulkan_host_forget(device);
  gm__vulkan_command_forget(device);
  gm__vulkan_timelines_forget(device);
  gm__vulkan_queues_forget(device);
  if (mode == GM_CLOSE_ABANDON) {
    gm__release(device->services, device, sizeof *device); /* a thread that is not here may hold its locks */
  } else {
    device_release(device);
  }
  gm__vulkan_fini(own, mode);
}
