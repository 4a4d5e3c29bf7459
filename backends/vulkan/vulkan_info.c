/* The names, limits and figures of a device. Nothing here judges a figure: gm's core has the rules. */
#include <stdio.h>
#include <string.h>

#include "backends/shared/plain.h"
#include "backends/shared/uuid.h"
#include "backends/vulkan/vulkan_device.h"
#include "backends/vulkan/vulkan_entries.h"

static const struct info_driver {
  VkDriverId id;
  const char *word;
} info_drivers[] = {{VK_DRIVER_ID_NVIDIA_PROPRIETARY, "nvidia"},
                    {VK_DRIVER_ID_MESA_RADV, "radv"},
                    {VK_DRIVER_ID_AMD_OPEN_SOURCE, "amdvlk"},
                    {VK_DRIVER_ID_AMD_PROPRIETARY, "amdgpu-pro"},
                    {VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA, "anv"},
                    {VK_DRIVER_ID_INTEL_PROPRIETARY_WINDOWS, "intel_windows"},
                    {VK_DRIVER_ID_MESA_LLVMPIPE, "llvmpipe"},
                    {VK_DRIVER_ID_MOLTENVK, "moltenvk"},
                    {VK_DRIVER_ID_MESA_DOZEN, "dozen"},
                    {VK_DRIVER_ID_MESA_NVK, "nvk"},
                    {VK_DRIVER_ID_MESA_TURNIP, "turnip"},
                    {VK_DRIVER_ID_MESA_V3DV, "v3dv"},
                    {VK_DRIVER_ID_MESA_PANVK, "panvk"},
                    {VK_DRIVER_ID_MESA_VENUS, "venus"},
                    {VK_DRIVER_ID_GOOGLE_SWIFTSHADER, "swiftshader"}};

static const char *info_driver_word(VkDriverId id) {
  for (size_t i = 0; i < sizeof info_drivers / sizeof info_drivers[0]; i++) {
    if (info_drivers[i].id == id) return info_drivers[i].word;
  }
  return "other";
}

static const struct info_vendor {
  uint32_t id;
  const char *word;
} info_vendors[] = {{0x10de, "nvidia"}, {0x1002, "amd"},       {0x8086, "intel"},
                    {0x106b, "apple"},  {0x13b5, "arm"},       {0x5143, "qualcomm"},
                    {0x1ae0, "google"}, {0x1414, "microsoft"}, {VK_VENDOR_ID_MESA, "mesa"}};

static void info_vendor_word(uint32_t id, char *out, size_t capacity) {
  snprintf(out, capacity, "0x%04x", id);
  for (size_t i = 0; i < sizeof info_vendors / sizeof info_vendors[0]; i++) {
    if (info_vendors[i].id == id) snprintf(out, capacity, "%s", info_vendors[i].word);
  }
}

static gm_device_type info_type(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return GM_DEVICE_TYPE_DISCRETE;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return GM_DEVICE_TYPE_INTEGRATED;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return GM_DEVICE_TYPE_DISCRETE;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return GM_DEVICE_TYPE_CPU;
    default: return GM_DEVICE_TYPE_UNKNOWN;
  }
}

static bool info_one_local_heap(const gm__vulkan_physical *physical) {
  return physical->driver == VK_DRIVER_ID_NVIDIA_PROPRIETARY;
}

typedef struct info_bytes {
  uint64_t total, largest_heap;
} info_bytes;

/* The sum follows the core's rule for heaps: the local ones of a discrete device, else all. */
static info_bytes info_heaps(const gm__vulkan_physical *physical) {
  bool discrete = info_type(physical->props.deviceType) == GM_DEVICE_TYPE_DISCRETE;
  info_bytes bytes = {0, 0};
  for (uint32_t i = 0; i < physical->memory.memoryHeapCount; i++) {
    const VkMemoryHeap *heap = &physical->memory.memoryHeaps[i];
    if (discrete && !(heap->flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)) continue;
    if (heap->size > bytes.largest_heap) bytes.largest_heap = heap->size;
    bytes.total = heap->size > UINT64_MAX - bytes.total ? UINT64_MAX : bytes.total + heap->size;
  }
  if (discrete && info_one_local_heap(physical)) bytes.total = bytes.largest_heap;
  return bytes;
}

static uint64_t info_max_alloc(const gm__vulkan_physical *physical) {
  uint64_t bytes = info_heaps(physical).largest_heap;
  if (physical->max_memory_bytes < bytes) bytes = physical->max_memory_bytes;
  return physical->max_buffer_bytes < bytes ? physical->max_buffer_bytes : bytes;
}

static uint64_t info_atom(const gm__vulkan_physical *physical) {
  for (uint32_t i = 0; i < physical->memory.memoryTypeCount; i++) {
    VkMemoryPropertyFlags flags = physical->memory.memoryTypes[i].propertyFlags;
    bool visible = flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
    if (visible && !(flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)) return physical->props.limits.nonCoherentAtomSize;
  }
  return 1;
}

static void info_texts(const gm__vulkan_physical *physical, gm_device_info *info) {
  const VkPhysicalDeviceProperties *props = &physical->props;
  snprintf(info->backend, sizeof info->backend, "vulkan");
  snprintf(info->name, sizeof info->name, "%.127s", props->deviceName);
  info_vendor_word(props->vendorID, info->vendor, sizeof info->vendor);
  snprintf(info->driver, sizeof info->driver, "%s", info_driver_word(physical->driver));
  snprintf(info->version, sizeof info->version, "%.63s", physical->driver_info);
  if (!info->version[0]) snprintf(info->version, sizeof info->version, "0x%08x", props->driverVersion);
  snprintf(info->capability, sizeof info->capability, "Vulkan %u.%u.%u", VK_API_VERSION_MAJOR(props->apiVersion),
           VK_API_VERSION_MINOR(props->apiVersion), VK_API_VERSION_PATCH(props->apiVersion));
  snprintf(info->pci, sizeof info->pci, "%s", physical->pci);
}

static void info_identity(const gm__vulkan_physical *physical, uint32_t index, gm_device_info *info) {
  memcpy(info->uuid, physical->uuid, sizeof info->uuid);
  info->uuid_derived = gm__uuid_is_zero(info->uuid, sizeof info->uuid);
  if (info->uuid_derived) {
    gm__uuid_derive("vulkan", info->driver, physical->props.deviceName, index, info->uuid);
  }
  info->has_luid = physical->has_luid;
  if (info->has_luid) memcpy(info->luid, physical->luid, sizeof info->luid);
  info->numa_node = -1;
}

/* Find the physical device by `device`, or by index where that is NULL. */
static gm_status info_physical(const gm__vulkan_driver *driver, uint32_t index, const gm__vulkan_device *device,
                               const char *op, const gm__vulkan_physical **out, gm_error *err) {
  const gm_status status = device ? GM_OK : gm__plain_check_index(op, driver->physical_count, index, err);
  if (!status) *out = device ? &device->physical : &driver->physicals[index];
  return status;
}

static bool info_shares(const gm__vulkan_physical *physical, const gm__vulkan_device *device) {
  for (uint32_t kind = 0; kind < VULKAN_SHARE_KINDS; kind++) {
    if (device ? device->shares[kind].can.exports : physical->sharing[kind].exports) return true;
  }
  return false;
}

/* The capabilities of an open or adopted device. Without one, those that opening would give. */
static uint64_t info_capabilities(const gm__vulkan_physical *physical, const gm__vulkan_device *device) {
  uint64_t missing = 0;
  if (!(device ? device->address : physical->address)) missing |= GM_CAP_ADDRESS;
  if (!info_shares(physical, device)) missing |= GM_CAP_SHARE;
  if (!(device ? device->sparse.granule != 0 : physical->sparse)) missing |= GM_CAP_VMM;
  if (device && device->adopted) missing |= GM_CAP_STREAMS;
  if (!(device ? device->host_types != 0 : physical->host_align != 0)) missing |= GM_CAP_REGISTRATION;
  return VULKAN_CAPABILITIES & ~missing;
}

gm_status gm__vulkan_device_count(void *user, uint32_t *out, gm_error *err) {
  (void)err;
  const gm__vulkan_driver *driver = user;
  *out = driver->physical_count;
  return GM_OK;
}

gm_status gm__vulkan_device_info(void *user, uint32_t index, void *open, gm_device_info *out, gm_error *err) {
  const gm__vulkan_device *device = open;
  const gm__vulkan_physical *physical = NULL;
  gm_status status = info_physical(user, index, device, "gm_backend_ops.device_info", &physical, err);
  if (status) return status;
  gm_device_info info = {.struct_size = sizeof info,
                         .index = index,
                         .api = GM_API_VULKAN,
                         .type = info_type(physical->props.deviceType),
                         .total_bytes = info_heaps(physical).total,
                         .max_alloc_bytes = info_max_alloc(physical),
                         .alignment = device ? device->alignment : gm__vulkan_alignment(physical, 0),
                         .map_atom_bytes = info_atom(physical),
                         .max_allocation_count = physical->props.limits.maxMemoryAllocationCount,
                         .capabilities = info_capabilities(physical, device)};
  const gm__vulkan_driver *driver = device ? device->driver : user;
  info.simulated = driver->syms.simulated != NULL;
  info.unified = info.type == GM_DEVICE_TYPE_INTEGRATED || info.type == GM_DEVICE_TYPE_CPU;
  info_texts(physical, &info);
  info_identity(physical, index, &info);
  *out = info;
  return GM_OK;
}

static gm_raw_place info_place(VkPhysicalDeviceType type) {
  if (type == VK_PHYSICAL_DEVICE_TYPE_CPU) return GM_RAW_CPU_DEVICE;
  return type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ? GM_RAW_INTEGRATED : GM_RAW_OWN_MEMORY;
}

static void info_budget(const gm__vulkan_syms *syms, const gm__vulkan_physical *physical,
                        VkPhysicalDeviceMemoryBudgetPropertiesEXT *out) {
  *out = (VkPhysicalDeviceMemoryBudgetPropertiesEXT){
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
  if (!physical->budget) return;
  VkPhysicalDeviceMemoryProperties2 memory = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2,
                                              .pNext = out};
  syms->vkGetPhysicalDeviceMemoryProperties2(physical->handle, &memory);
}

gm_status gm__vulkan_figures(void *user, uint32_t index, void *open, gm_raw_figures *out, gm_error *err) {
  gm__vulkan_driver *driver = user;
  gm__vulkan_device *device = open;
  const gm__vulkan_physical *physical = NULL;
  gm_status status = info_physical(driver, index, device, "gm_backend_ops.figures", &physical, err);
  if (status) return status;
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget;
  info_budget(device ? &device->syms : &driver->syms, physical, &budget);
  gm__vulkan_heaps *heaps = device ? device->heaps : &driver->heaps[index];
  *out = (gm_raw_figures){.struct_size = sizeof *out,
                          .rules = GM_RAW_VULKAN,
                          .place = info_place(physical->props.deviceType),
                          .flags = (physical->budget ? (uint32_t)GM_RAW_BUDGET : 0) |
                                   (info_one_local_heap(physical) ? (uint32_t)GM_RAW_ONE_LOCAL_HEAP : 0),
                          .heap_count = physical->memory.memoryHeapCount};
  for (uint32_t i = 0; i < out->heap_count; i++) {
    out->heaps[i] = (gm_raw_heap){.bytes = physical->memory.memoryHeaps[i].size,
                                  .budget_bytes = budget.heapBudget[i],
                                  .usage_bytes = budget.heapUsage[i],
                                  .own_bytes = atomic_load(&heaps->held[i]),
                                  .flags = physical->memory.memoryHeaps[i].flags};
  }
  return GM_OK;
}
