#include "backends/vulkan/vulkan_physical.h"

#include <stdio.h>
#include <string.h>

#include "backends/vulkan/vulkan_status.h"
#include "core/base/alloc.h"
#include "core/base/error.h"

/* Invariant: the kept data is in range, whatever a driver answers. Counts fit their arrays, heap indices name a heap,
 * and texts end. gm chains a structure only where the version or an extension says that the driver knows it. */

enum { PHYSICAL_MOST_UNIT = 1 << 30 };

typedef struct physical_extensions {
  bool timeline, budget, pci, maintenance4, driver, address, fd, dmabuf, priority, host;
} physical_extensions;

static void physical_note_extension(const char *name, physical_extensions *out) {
  if (!strcmp(name, VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME)) out->timeline = true;
  if (!strcmp(name, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME)) out->budget = true;
  if (!strcmp(name, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME)) out->pci = true;
  if (!strcmp(name, VK_KHR_MAINTENANCE_4_EXTENSION_NAME)) out->maintenance4 = true;
  if (!strcmp(name, VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME)) out->driver = true;
  if (!strcmp(name, VK_KHR_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME)) out->address = true;
  if (!strcmp(name, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME)) out->fd = true;
  if (!strcmp(name, VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME)) out->dmabuf = true;
  if (!strcmp(name, VK_EXT_MEMORY_PRIORITY_EXTENSION_NAME)) out->priority = true;
  if (!strcmp(name, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME)) out->host = true;
}

static gm_status physical_extensions_read(const gm__vulkan_syms *syms, const gm_services *services,
                                          VkPhysicalDevice handle, physical_extensions *out, gm_error *err) {
  static const char op[] = "vkEnumerateDeviceExtensionProperties";
  uint32_t count = 0;
  VkResult result = syms->vkEnumerateDeviceExtensionProperties(handle, NULL, &count, NULL);
  if (result) return gm__vulkan_fail(result, op, err);
  uint32_t capacity = count;
  VkExtensionProperties *list = gm__alloc_array(services, capacity, sizeof *list);
  if (!list) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for %u extensions", capacity);
  result = syms->vkEnumerateDeviceExtensionProperties(handle, NULL, &count, list);
  for (uint32_t i = 0; result >= 0 && i < count && i < capacity; i++) {
    list[i].extensionName[VK_MAX_EXTENSION_NAME_SIZE - 1] = '\0';
    physical_note_extension(list[i].extensionName, out);
  }
  gm__release(services, list, capacity * sizeof *list);
  return result < 0 ? gm__vulkan_fail(result, op, err) : GM_OK;
}

/* The structures that gm may chain. A chained one has its `sType` set. */
typedef struct physical_chain {
  VkPhysicalDeviceProperties2 head;
  VkPhysicalDeviceIDProperties id;
  VkPhysicalDeviceMaintenance3Properties maintenance3;
  VkPhysicalDeviceMaintenance4Properties maintenance4;
  VkPhysicalDeviceDriverProperties driver;
  VkPhysicalDevicePCIBusInfoPropertiesEXT pci;
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT host;
} physical_chain;

static void physical_link(void *head, void *item, VkStructureType type) {
  VkBaseOutStructure *first = head, *base = item;
  base->sType = type;
  base->pNext = first->pNext;
  first->pNext = base;
}

static void physical_make_chain(physical_chain *chain, uint32_t version, const physical_extensions *has) {
  *chain = (physical_chain){.head.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  physical_link(chain, &chain->id, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES);
  physical_link(chain, &chain->maintenance3, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES);
  if (version >= VK_API_VERSION_1_3 || has->maintenance4) {
    physical_link(chain, &chain->maintenance4, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES);
  }
  if (version >= VK_API_VERSION_1_2 || has->driver) {
    physical_link(chain, &chain->driver, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES);
  }
  if (has->pci) physical_link(chain, &chain->pci, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT);
  if (has->host) {
    physical_link(chain, &chain->host, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT);
  }
}

static void physical_keep_chain(const physical_chain *chain, gm__vulkan_physical *out) {
  memcpy(out->uuid, chain->id.deviceUUID, sizeof out->uuid);
  memcpy(out->driver_uuid, chain->id.driverUUID, sizeof out->driver_uuid);
  memcpy(out->luid, chain->id.deviceLUID, sizeof out->luid);
  out->has_luid = chain->id.deviceLUIDValid != VK_FALSE;
  if (chain->maintenance3.maxMemoryAllocationSize) out->max_memory_bytes = chain->maintenance3.maxMemoryAllocationSize;
  if (chain->maintenance4.maxBufferSize) out->max_buffer_bytes = chain->maintenance4.maxBufferSize;
  out->driver = chain->driver.driverID;
  memcpy(out->driver_info, chain->driver.driverInfo, sizeof out->driver_info);
  out->driver_info[sizeof out->driver_info - 1] = '\0';
  const uint64_t unit = chain->host.minImportedHostPointerAlignment;
  if (unit <= PHYSICAL_MOST_UNIT && !(unit & (unit - 1))) out->host_align = unit;
  if (!chain->pci.sType) return;
  snprintf(out->pci, sizeof out->pci, "%04x:%02x:%02x.%x", (unsigned)chain->pci.pciDomain,
           (unsigned)chain->pci.pciBus & 0xff, (unsigned)chain->pci.pciDevice & 0xff,
           (unsigned)chain->pci.pciFunction & 0xf);
}

static void physical_features(const gm__vulkan_syms *syms, const physical_extensions *has, gm__vulkan_physical *out) {
  bool core = out->version >= VK_API_VERSION_1_2;
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {.timelineSemaphore = VK_FALSE};
  VkPhysicalDeviceBufferDeviceAddressFeatures address = {.bufferDeviceAddress = VK_FALSE};
  VkPhysicalDeviceMemoryPriorityFeaturesEXT priority = {.memoryPriority = VK_FALSE};
  VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  if (core || has->timeline) {
    physical_link(&features, &timeline, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES);
  }
  if (core || has->address) {
    physical_link(&features, &address, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES);
  }
  if (has->priority) {
    physical_link(&features, &priority, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PRIORITY_FEATURES_EXT);
  }
  syms->vkGetPhysicalDeviceFeatures2(out->handle, &features);
  out->timeline = timeline.timelineSemaphore != VK_FALSE;
  out->timeline_ext = out->timeline && !core;
  out->address = address.bufferDeviceAddress != VK_FALSE;
  out->address_ext = out->address && !core;
  out->priority = priority.memoryPriority != VK_FALSE;
  out->sparse = features.features.sparseBinding && features.features.sparseResidencyBuffer &&
                out->sparse_family != VULKAN_NO_FAMILY;
}

VkExternalMemoryHandleTypeFlagBits gm__vulkan_handle_type(gm_share_kind kind) {
  if (kind == GM_SHARE_FD) return VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  if (kind == GM_SHARE_DMABUF) return VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT;
  return (VkExternalMemoryHandleTypeFlagBits)0;
}

VkBufferUsageFlags gm__vulkan_buffer_usage(bool address) {
  return VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
         VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT |
         (address ? (VkBufferUsageFlags)VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT : 0);
}

gm__vulkan_sharing gm__vulkan_ask_sharing(const gm__vulkan_syms *syms, const gm__vulkan_physical *physical,
                                          VkExternalMemoryHandleTypeFlagBits kind, VkBufferUsageFlags usage) {
  const VkPhysicalDeviceExternalBufferInfo info = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO, .usage = usage, .handleType = kind};
  VkExternalBufferProperties props = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};
  syms->vkGetPhysicalDeviceExternalBufferProperties(physical->handle, &info, &props);
  VkExternalMemoryFeatureFlags can = props.externalMemoryProperties.externalMemoryFeatures;
  return (gm__vulkan_sharing){.exports = can & VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT,
                              .imports = can & VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT,
                              .dedicated = can & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT};
}

static void physical_sharing(const gm__vulkan_syms *syms, const physical_extensions *has, gm__vulkan_physical *out) {
  out->fd = has->fd;
  out->dmabuf = has->fd && has->dmabuf; /* its descriptors go through the entries of the former */
  const VkBufferUsageFlags usage = gm__vulkan_buffer_usage(out->address);
  for (int kind = 0; kind < VULKAN_SHARE_KINDS; kind++) {
    const bool has_it = (kind == GM_SHARE_FD && out->fd) || (kind == GM_SHARE_DMABUF && out->dmabuf);
    const VkExternalMemoryHandleTypeFlagBits native = gm__vulkan_handle_type((gm_share_kind)kind);
    if (has_it) out->sharing[kind] = gm__vulkan_ask_sharing(syms, out, native, usage);
  }
}

static void physical_families(const gm__vulkan_syms *syms, gm__vulkan_physical *out) {
  VkQueueFamilyProperties families[32];
  uint32_t count = 32;
  syms->vkGetPhysicalDeviceQueueFamilyProperties(out->handle, &count, families);
  out->family_count = count < 32 ? count : 32;
  out->family = out->sparse_family = VULKAN_NO_FAMILY;
  for (uint32_t i = 0; i < out->family_count; i++) {
    if (!families[i].queueCount) continue;
    if (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) {
      out->compute_families |= 1u << i;
      if (out->family == VULKAN_NO_FAMILY) out->family = i;
    }
    if (!(families[i].queueFlags & VK_QUEUE_SPARSE_BINDING_BIT)) continue;
    out->sparse_families |= 1u << i;
    if (out->sparse_family == VULKAN_NO_FAMILY || out->family == i) out->sparse_family = i;
  }
}

static void physical_memory(const gm__vulkan_syms *syms, gm__vulkan_physical *out) {
  VkPhysicalDeviceMemoryProperties2 memory = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
  syms->vkGetPhysicalDeviceMemoryProperties2(out->handle, &memory);
  out->memory = memory.memoryProperties;
  if (out->memory.memoryHeapCount > VK_MAX_MEMORY_HEAPS) out->memory.memoryHeapCount = VK_MAX_MEMORY_HEAPS;
  if (out->memory.memoryTypeCount > VK_MAX_MEMORY_TYPES) out->memory.memoryTypeCount = VK_MAX_MEMORY_TYPES;
  for (uint32_t i = 0; i < out->memory.memoryTypeCount; i++) {
    VkMemoryType *type = &out->memory.memoryTypes[i];
    if (type->heapIndex >= out->memory.memoryHeapCount) *type = (VkMemoryType){0}; /* no flags: never chosen */
  }
}

gm_status gm__vulkan_physical_read(const gm__vulkan_syms *syms, const gm_services *services, VkPhysicalDevice handle,
                                   uint32_t version, gm__vulkan_physical *out, gm_error *err) {
  physical_extensions has = {0};
  gm_status status = physical_extensions_read(syms, services, handle, &has, err);
  if (status) return status;
  VkPhysicalDeviceProperties2 plain = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  syms->vkGetPhysicalDeviceProperties2(handle, &plain);
  *out = (gm__vulkan_physical){.handle = handle,
                               .props = plain.properties,
                               .max_memory_bytes = UINT64_MAX,
                               .max_buffer_bytes = UINT64_MAX,
                               .budget = has.budget};
  out->props.deviceName[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE - 1] = '\0';
  out->version = out->props.apiVersion < version ? out->props.apiVersion : version;
  physical_families(syms, out);
  physical_memory(syms, out);
  if (out->version < VK_API_VERSION_1_1) return GM_OK;
  physical_chain chain;
  physical_make_chain(&chain, out->version, &has);
  syms->vkGetPhysicalDeviceProperties2(handle, &chain.head);
  physical_keep_chain(&chain, out);
  physical_features(syms, &has, out);
  physical_sharing(syms, &has, out);
  return GM_OK;
}

gm_status gm__vulkan_physical_usable(const gm__vulkan_physical *physical, bool timelines, gm_error *err) {
  const char *why = NULL;
  if (physical->version < VK_API_VERSION_1_1) why = "it has Vulkan 1.0, gm needs 1.1";
  if (!why && timelines && !physical->timeline) {
    why = "it has no timeline semaphores (Vulkan 1.2 or VK_KHR_timeline_semaphore)";
  }
  if (!why && physical->family == VULKAN_NO_FAMILY) why = "it has no queue for compute";
  if (!why) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, "vkGetPhysicalDeviceProperties2", "%.100s cannot be used: %s",
                  physical->props.deviceName, why);
}

bool gm__vulkan_heaps_take(gm__vulkan_heaps *heaps, uint32_t heap, uint64_t bytes, uint64_t limit) {
  uint64_t held = atomic_load(&heaps->held[heap]);
  do {
    if (bytes > limit || held > limit - bytes) return false;
  } while (!atomic_compare_exchange_weak(&heaps->held[heap], &held, held + bytes));
  return true;
}

void gm__vulkan_heaps_give(gm__vulkan_heaps *heaps, uint32_t heap, uint64_t bytes) {
  atomic_fetch_sub(&heaps->held[heap], bytes);
}
