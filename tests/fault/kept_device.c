#include "fault/kept_device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "backends/vulkan/vulkan_syms.h"
#include "support/sample.h"

/* Invariants: what lies here is used by nobody. The device belongs to `device_of`, which lies here too or is the only
 * instance that gm has. */
static struct {
  PFN_vkCreateInstance create_instance;
  PFN_vkDestroyInstance destroy_instance;
  PFN_vkCreateDevice create_device;
  PFN_vkDestroyDevice destroy_device;
  VkInstance instance, newest; /* the newest one that may lie here */
  unsigned instances;          /* that gm has */
  VkInstance device_of, only;  /* the only one that gm has */
  VkDevice device, newest_device;
  char like[512], newest_like[512]; /* how those two were asked for */
} kept;

static bool kept_by_chance(void) { return SAMPLE_IS_FULL && sample_random() % 4; }

static VKAPI_ATTR VkResult VKAPI_CALL kept_create_instance(const VkInstanceCreateInfo *info,
                                                           const VkAllocationCallbacks *host, VkInstance *out) {
  const bool plain = !info->pNext && !info->enabledLayerCount && !info->enabledExtensionCount;
  const bool again = plain && kept.instance && kept.instances == 0;
  const VkResult result = again ? VK_SUCCESS : kept.create_instance(info, host, out);
  if (result) return result;
  if (again) *out = kept.instance, kept.instance = VK_NULL_HANDLE;
  if (plain) kept.newest = *out;
  kept.only = ++kept.instances == 1 ? *out : VK_NULL_HANDLE;
  return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL kept_destroy_instance(VkInstance instance, const VkAllocationCallbacks *host) {
  if (--kept.instances == 0 && !kept.instance && instance == kept.newest && kept_by_chance()) {
    kept.instance = instance;
    return;
  }
  if (kept.device && kept.device_of == instance) {
    kept.destroy_device(kept.device, NULL);
    kept.device = VK_NULL_HANDLE;
  }
  kept.destroy_instance(instance, host);
}

/* In words how a device was asked for. The features say nothing more than their structures: gm sets all it names. */
static void kept_ask(VkPhysicalDevice physical, const VkDeviceCreateInfo *info, char *out, size_t size) {
  int at = snprintf(out, size, "%p %d", (void *)physical, info->pEnabledFeatures != NULL);
  for (uint32_t i = 0; i < info->queueCreateInfoCount; i++)
    at += snprintf(out + at, size - (size_t)at, " %u", info->pQueueCreateInfos[i].queueFamilyIndex);
  for (const VkBaseInStructure *next = info->pNext; next; next = next->pNext)
    at += snprintf(out + at, size - (size_t)at, " %d", (int)next->sType);
  for (uint32_t i = 0; i < info->enabledExtensionCount; i++)
    at += snprintf(out + at, size - (size_t)at, " %s", info->ppEnabledExtensionNames[i]);
}

static VKAPI_ATTR VkResult VKAPI_CALL kept_create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
                                                         const VkAllocationCallbacks *host, VkDevice *out) {
  char like[sizeof kept.like];
  kept_ask(physical, info, like, sizeof like);
  const bool again = kept.device && kept.only && kept.device_of == kept.only && strcmp(like, kept.like) == 0;
  const VkResult result = again ? VK_SUCCESS : kept.create_device(physical, info, host, out);
  if (result) return result;
  if (again) *out = kept.device, kept.device = VK_NULL_HANDLE;
  memcpy(kept.newest_like, like, sizeof like);
  kept.newest_device = *out;
  return VK_SUCCESS;
}

/* A kept device has nothing running, like a destroyed one. */
static void kept_wait(VkDevice device) {
  static PFN_vkDeviceWaitIdle wait;
  void *loader = wait ? NULL : dlopen("libvulkan.so.1", RTLD_NOW | RTLD_NOLOAD);
  void *symbol = loader ? dlsym(loader, "vkDeviceWaitIdle") : NULL;
  if (symbol) memcpy(&wait, &symbol, sizeof wait);
  if (wait) wait(device);
}

static VKAPI_ATTR void VKAPI_CALL kept_destroy_device(VkDevice device, const VkAllocationCallbacks *host) {
  if (kept.device || device != kept.newest_device || !kept.only || !kept_by_chance()) {
    kept.destroy_device(device, host);
    return;
  }
  kept_wait(device);
  kept.device = device;
  kept.device_of = kept.only;
  memcpy(kept.like, kept.newest_like, sizeof kept.like);
}

void *kept_device_entry(const char *symbol, void *real) {
  const struct {
    const char *symbol;
    void *real; /* where it is noted */
    PFN_vkVoidFunction here;
  } entries[] = {{"vkCreateInstance", &kept.create_instance, (PFN_vkVoidFunction)kept_create_instance},
                 {"vkDestroyInstance", &kept.destroy_instance, (PFN_vkVoidFunction)kept_destroy_instance},
                 {"vkCreateDevice", &kept.create_device, (PFN_vkVoidFunction)kept_create_device},
                 {"vkDestroyDevice", &kept.destroy_device, (PFN_vkVoidFunction)kept_destroy_device}};
  for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
    if (strcmp(symbol, entries[i].symbol) != 0) continue;
    memcpy(entries[i].real, &real, sizeof real);
    memcpy(&real, &entries[i].here, sizeof real);
    return real;
  }
  return real;
}
