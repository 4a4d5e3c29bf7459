#include <string.h>

#include "simulated/vulkan/sim_vulkan.h"

/* Memory that leaves the process. The real driver has opaque descriptors; a dma-buf is played as one of them. */

enum { OPAQUE = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT, DMABUF = VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT };

static VkExternalMemoryHandleTypeFlags share_real(VkExternalMemoryHandleTypeFlags kinds) {
  return kinds & DMABUF ? (kinds & ~(VkExternalMemoryHandleTypeFlags)DMABUF) | OPAQUE : kinds;
}

void sim_external_properties(VkPhysicalDevice physical, const VkPhysicalDeviceExternalBufferInfo *info,
                             VkExternalBufferProperties *out) {
  const sim_physical *played = (const sim_physical *)(const void *)physical;
  VkPhysicalDeviceExternalBufferInfo real = *info;
  VkExternalMemoryProperties *props = &out->externalMemoryProperties;
  if ((info->handleType & DMABUF) && shim_script_has(&sim.script, "dmabuf")) {
    real.handleType = (VkExternalMemoryHandleTypeFlagBits)OPAQUE;
  }
  sim.real.vkGetPhysicalDeviceExternalBufferProperties(played->real, &real, out);
  if (shim_script_has(&sim.script, "no_share")) props->externalMemoryFeatures = 0;
  if (shim_script_has(&sim.script, "dedicated_only")) {
    props->externalMemoryFeatures |= VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT;
  }
}

const void *sim_share_buffer(const VkBufferCreateInfo *info, VkExternalMemoryBufferCreateInfo *room) {
  const VkBaseInStructure *first = info->pNext;
  if (!first || first->sType != VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO) return info->pNext;
  memcpy(room, first, sizeof *room);
  room->handleTypes = share_real(room->handleTypes);
  return room;
}

void sim_share_memory(VkMemoryAllocateInfo *info) {
  for (VkBaseOutStructure *item = (VkBaseOutStructure *)(uintptr_t)info->pNext; item; item = item->pNext) {
    if (item->sType == VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO) {
      VkExportMemoryAllocateInfo *leaves = (void *)item;
      leaves->handleTypes = share_real(leaves->handleTypes);
    }
    if (item->sType == VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR) {
      VkImportMemoryFdInfoKHR *comes = (void *)item;
      comes->handleType = (VkExternalMemoryHandleTypeFlagBits)share_real(comes->handleType);
    }
  }
}

VkResult sim_get_fd(VkDevice device, const VkMemoryGetFdInfoKHR *info, int *out) {
  VkMemoryGetFdInfoKHR real = *info;
  real.handleType = (VkExternalMemoryHandleTypeFlagBits)share_real(info->handleType);
  if (!sim_null("vkGetMemoryFdKHR")) return sim.real.vkGetMemoryFdKHR(device, &real, out);
  *out = -1;
  return VK_SUCCESS;
}

VkResult sim_fd_properties(VkDevice device, VkExternalMemoryHandleTypeFlagBits kind, int fd,
                           VkMemoryFdPropertiesKHR *out) {
  VkPhysicalDeviceMemoryProperties memory;
  (void)device, (void)fd;
  if (!(kind & DMABUF)) shim_violation("vulkan", "an opaque descriptor has no types");
  sim_memory_layout(&memory);
  out->memoryTypeBits = (1u << memory.memoryTypeCount) - 1;
  return VK_SUCCESS;
}

/* Host memory has the types that the host sees and that are no card's own; all that it sees, where there is one heap.
 */
VkResult sim_host_types(VkDevice device, VkExternalMemoryHandleTypeFlagBits kind, const void *pointer,
                        VkMemoryHostPointerPropertiesEXT *out) {
  VkPhysicalDeviceMemoryProperties memory;
  const VkResult result = sim.real.vkGetMemoryHostPointerPropertiesEXT(device, kind, pointer, out);
  sim_memory_layout(&memory);
  out->memoryTypeBits = 0;
  for (uint32_t i = 0; i < memory.memoryTypeCount; i++) {
    const VkMemoryPropertyFlags flags = memory.memoryTypes[i].propertyFlags;
    const bool own = flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT && memory.memoryHeapCount > 1;
    if (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT && !own) out->memoryTypeBits |= 1u << i;
  }
  return result;
}

bool sim_share_is_host(const VkMemoryAllocateInfo *info) {
  const VkBaseInStructure *item = info->pNext;
  while (item && item->sType != VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT) item = item->pNext;
  return item != NULL;
}
