#include <stdlib.h>
#include <string.h>

#include "simulated/vulkan/sim_vulkan.h"

/* Devices and their queue; a device can be lost after some submissions. */

sim_device *sim_device_find(VkDevice handle) {
  sim_device *at = sim.devices;
  while (at && at->handle != handle) at = at->next;
  return at;
}

sim_device *sim_device_of_queue(VkQueue queue) {
  sim_device *at = sim.devices;
  while (at && at->queue != queue) at = at->next;
  return at;
}

static bool device_keeps(const char *extension) {
  return strcmp(extension, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME) != 0 &&
         strcmp(extension, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME) != 0 &&
         strcmp(extension, VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME) != 0;
}

static void device_remember(VkDevice handle, uint32_t index) {
  sim_device *made = calloc(1, sizeof *made);
  if (!made) abort();
  pthread_mutex_lock(&sim.mutex);
  *made = (sim_device){.handle = handle, .index = index, .next = sim.devices};
  sim.devices = made;
  pthread_mutex_unlock(&sim.mutex);
}

VkResult sim_create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
                           const VkAllocationCallbacks *callbacks, VkDevice *out) {
  const sim_physical *played = (const sim_physical *)(void *)physical;
  const char *extensions[64];
  VkDeviceCreateInfo real = *info;
  if (sim_null("vkCreateDevice")) {
    *out = VK_NULL_HANDLE;
    return VK_SUCCESS;
  }
  real.pEnabledFeatures = NULL; /* sparse buffers are played */
  real.enabledExtensionCount = 0;
  for (uint32_t i = 0; i < info->enabledExtensionCount && i < 64; i++) {
    if (device_keeps(info->ppEnabledExtensionNames[i])) {
      extensions[real.enabledExtensionCount++] = info->ppEnabledExtensionNames[i];
    }
  }
  real.ppEnabledExtensionNames = extensions;
  const VkResult result = sim.real.vkCreateDevice(played->real, &real, callbacks, out);
  if (result == VK_SUCCESS) device_remember(*out, played->index);
  return result;
}

void sim_destroy_device(VkDevice device, const VkAllocationCallbacks *callbacks) {
  pthread_mutex_lock(&sim.mutex);
  for (sim_device **at = &sim.devices; *at; at = &(*at)->next) {
    sim_device *played = *at;
    if (played->handle != device) continue;
    if (played->live) shim_violation("vulkan", "vkDestroyDevice with %u allocations alive", played->live);
    *at = played->next;
    free(played);
    break;
  }
  pthread_mutex_unlock(&sim.mutex);
  sim.real.vkDestroyDevice(device, callbacks);
}

void sim_get_queue(VkDevice device, uint32_t family, uint32_t index, VkQueue *out) {
  sim.real.vkGetDeviceQueue(device, family, index, out);
  pthread_mutex_lock(&sim.mutex);
  sim_device *played = sim_device_find(device);
  if (played) played->queue = *out;
  pthread_mutex_unlock(&sim.mutex);
}

void sim_settle(void) {
  pthread_mutex_lock(&sim.mutex);
  for (const sim_physical *at = sim.physicals; at; at = at->next) {
    const PFN_vkDeviceWaitIdle wait =
        (PFN_vkDeviceWaitIdle)sim.real.vkGetInstanceProcAddr(at->instance, "vkDeviceWaitIdle");
    for (const sim_device *device = sim.devices; wait && device; device = device->next) wait(device->handle);
  }
  pthread_mutex_unlock(&sim.mutex);
}

/* `more` submissions are about to be made. Under no lock. */
static bool device_lost(VkDevice device, VkQueue queue, uint64_t more) {
  const uint64_t limit = shim_script_number(&sim.script, "lost_after", UINT64_MAX);
  pthread_mutex_lock(&sim.mutex);
  sim_device *played = device ? sim_device_find(device) : sim_device_of_queue(queue);
  if (played) played->submits += more;
  const bool lost = played && (more ? played->submits > limit : limit != UINT64_MAX && played->submits >= limit + 1);
  pthread_mutex_unlock(&sim.mutex);
  if (lost) sim_settle();
  return lost;
}

VkResult sim_submit(VkQueue queue, uint32_t count, const VkSubmitInfo *infos, VkFence fence) {
  if (device_lost(VK_NULL_HANDLE, queue, 1)) return VK_ERROR_DEVICE_LOST;
  return sim.real.vkQueueSubmit(queue, count, infos, fence);
}

/* Done at once; the fence says so in the queue's order. */
VkResult sim_bind_sparse(VkQueue queue, uint32_t count, const VkBindSparseInfo *infos, VkFence fence) {
  if (device_lost(VK_NULL_HANDLE, queue, 1)) return VK_ERROR_DEVICE_LOST;
  for (uint32_t i = 0; i < count; i++) sim_sparse_bind(&infos[i]);
  return sim.real.vkQueueSubmit(queue, 0, NULL, fence);
}

VkResult sim_wait_fences(VkDevice device, uint32_t count, const VkFence *fences, VkBool32 all, uint64_t timeout_ns) {
  if (device_lost(device, VK_NULL_HANDLE, 0)) return VK_ERROR_DEVICE_LOST;
  return sim.real.vkWaitForFences(device, count, fences, all, timeout_ns);
}

VkResult sim_create_fence(VkDevice device, const VkFenceCreateInfo *info, const VkAllocationCallbacks *callbacks,
                          VkFence *out) {
  if (!sim_null("vkCreateFence")) return sim.real.vkCreateFence(device, info, callbacks, out);
  *out = VK_NULL_HANDLE;
  return VK_SUCCESS;
}

VkResult sim_wait(VkDevice device, const VkSemaphoreWaitInfo *info, uint64_t timeout_ns) {
  if (device_lost(device, VK_NULL_HANDLE, 0)) return VK_ERROR_DEVICE_LOST;
  return sim.real.vkWaitSemaphores(device, info, timeout_ns);
}

VkResult sim_counter(VkDevice device, VkSemaphore semaphore, uint64_t *out) {
  if (device_lost(device, VK_NULL_HANDLE, 0)) return VK_ERROR_DEVICE_LOST;
  return sim.real.vkGetSemaphoreCounterValue(device, semaphore, out);
}

VkResult sim_create_semaphore(VkDevice device, const VkSemaphoreCreateInfo *info,
                              const VkAllocationCallbacks *callbacks, VkSemaphore *out) {
  if (!sim_null("vkCreateSemaphore")) return sim.real.vkCreateSemaphore(device, info, callbacks, out);
  *out = VK_NULL_HANDLE;
  return VK_SUCCESS;
}

VkResult sim_create_command_pool(VkDevice device, const VkCommandPoolCreateInfo *info,
                                 const VkAllocationCallbacks *callbacks, VkCommandPool *out) {
  if (!sim_null("vkCreateCommandPool")) return sim.real.vkCreateCommandPool(device, info, callbacks, out);
  *out = VK_NULL_HANDLE;
  return VK_SUCCESS;
}

VkResult sim_allocate_commands(VkDevice device, const VkCommandBufferAllocateInfo *info, VkCommandBuffer *out) {
  if (!sim_null("vkAllocateCommandBuffers")) return sim.real.vkAllocateCommandBuffers(device, info, out);
  for (uint32_t i = 0; i < info->commandBufferCount; i++) out[i] = VK_NULL_HANDLE;
  return VK_SUCCESS;
}
