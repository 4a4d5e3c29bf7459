#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simulated/vulkan/sim_vulkan.h"

/* Physical devices: copies of the first real one, each with a name that says what it is. */

static const sim_physical *physical_of(VkPhysicalDevice physical) {
  return (const sim_physical *)(const void *)physical;
}

VkResult sim_create_instance(const VkInstanceCreateInfo *info, const VkAllocationCallbacks *callbacks,
                             VkInstance *out) {
  if (sim_null("vkCreateInstance")) {
    *out = VK_NULL_HANDLE;
    return VK_SUCCESS;
  }
  return sim.real.vkCreateInstance(info, callbacks, out);
}

void sim_destroy_instance(VkInstance instance, const VkAllocationCallbacks *callbacks) {
  pthread_mutex_lock(&sim.mutex);
  for (sim_physical **at = &sim.physicals; *at;) {
    sim_physical *played = *at;
    if (played->instance != instance) {
      at = &played->next;
      continue;
    }
    *at = played->next;
    free(played);
  }
  pthread_mutex_unlock(&sim.mutex);
  sim.real.vkDestroyInstance(instance, callbacks);
}

/* It is one handle each time, as of a real driver. */
static sim_physical *physical_get(VkInstance instance, VkPhysicalDevice real, uint32_t index) {
  for (sim_physical *at = sim.physicals; at; at = at->next) {
    if (at->instance == instance && at->index == index) return at;
  }
  sim_physical *made = calloc(1, sizeof *made);
  if (!made) abort();
  *made = (sim_physical){.real = real, .instance = instance, .index = index, .next = sim.physicals};
  sim.physicals = made;
  return made;
}

VkResult sim_enumerate(VkInstance instance, uint32_t *count, VkPhysicalDevice *out) {
  VkPhysicalDevice real;
  uint32_t one = 1;
  const VkResult result = sim.real.vkEnumeratePhysicalDevices(instance, &one, &real);
  if (result < 0) return result;
  const uint32_t there = one ? (uint32_t)shim_script_number(&sim.script, "devices", 1) : 0;
  const uint32_t wanted = !out || *count > there ? there : *count;
  pthread_mutex_lock(&sim.mutex);
  for (uint32_t i = 0; out && i < wanted && i < SIM_DEVICES; i++) {
    out[i] = (VkPhysicalDevice)(void *)physical_get(instance, real, i);
  }
  pthread_mutex_unlock(&sim.mutex);
  *count = shim_script_is(&sim.script, "hostile", "count") ? UINT32_MAX : wanted;
  return out && wanted < there ? VK_INCOMPLETE : VK_SUCCESS;
}

static void physical_add_extension(const char *name, VkExtensionProperties *out, uint32_t capacity, uint32_t *count) {
  if (out && *count < capacity) {
    memset(&out[*count], 0, sizeof out[*count]);
    snprintf(out[*count].extensionName, sizeof out[*count].extensionName, "%s", name);
    out[*count].specVersion = 1;
  }
  (*count)++;
}

static bool physical_keeps_extension(const char *name) {
  if (!strcmp(name, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME)) return false;
  return !shim_script_has(&sim.script, "no_timeline") || strcmp(name, VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME) != 0;
}

VkResult sim_extensions(VkPhysicalDevice physical, const char *layer, uint32_t *count, VkExtensionProperties *out) {
  VkExtensionProperties real[256];
  uint32_t real_count = 256, capacity = out ? *count : 0, total = 0;
  const PFN_vkEnumerateDeviceExtensionProperties ask = sim.real.vkEnumerateDeviceExtensionProperties;
  if (layer) return ask(physical_of(physical)->real, layer, count, out);
  const VkResult result = ask(physical_of(physical)->real, NULL, &real_count, real);
  if (result < 0) return result;
  for (uint32_t i = 0; i < real_count; i++) {
    if (physical_keeps_extension(real[i].extensionName)) {
      physical_add_extension(real[i].extensionName, out, capacity, &total);
    }
  }
  if (shim_script_has(&sim.script, "budget")) {
    physical_add_extension(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME, out, capacity, &total);
  }
  if (shim_script_has(&sim.script, "pci")) {
    physical_add_extension(VK_EXT_PCI_BUS_INFO_EXTENSION_NAME, out, capacity, &total);
  }
  if (shim_script_has(&sim.script, "dmabuf")) {
    physical_add_extension(VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME, out, capacity, &total);
  }
  if (out && shim_script_is(&sim.script, "hostile", "names")) {
    for (uint32_t i = 0; i < capacity; i++) memset(out[i].extensionName, 'A', sizeof out[i].extensionName);
  }
  *count = out && total > capacity ? capacity : total;
  if (shim_script_is(&sim.script, "hostile", "extensions")) *count = out ? *count : UINT32_MAX;
  return out && total > capacity ? VK_INCOMPLETE : VK_SUCCESS;
}

static void physical_identity(const sim_physical *played, VkPhysicalDeviceIDProperties *out) {
  if (shim_script_has(&sim.script, "no_uuid"))
    memset(out->deviceUUID, 0, sizeof out->deviceUUID);
  else if (!shim_script_has(&sim.script, "same_uuid"))
    out->deviceUUID[VK_UUID_SIZE - 1] = (uint8_t)(out->deviceUUID[VK_UUID_SIZE - 1] ^ played->index);
}

static void physical_pci(const sim_physical *played, VkPhysicalDevicePCIBusInfoPropertiesEXT *out) {
  out->pciDomain = 0;
  out->pciBus = (uint32_t)shim_script_number(&sim.script, "pci", 1);
  if (!shim_script_has(&sim.script, "same_pci")) out->pciBus += played->index;
  out->pciDevice = out->pciFunction = 0;
}

static void physical_chain(const sim_physical *played, VkBaseOutStructure *item) {
  const shim_script *script = &sim.script;
  for (; item; item = item->pNext) {
    if (item->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES) physical_identity(played, (void *)item);
    if (item->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT) {
      physical_pci(played, (void *)item);
    }
    if (item->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES) {
      VkPhysicalDeviceMaintenance3Properties *limits = (void *)item;
      limits->maxMemoryAllocationSize = shim_script_number(script, "maxalloc", limits->maxMemoryAllocationSize);
    }
    if (item->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES) {
      VkPhysicalDeviceMaintenance4Properties *limits = (void *)item;
      limits->maxBufferSize = shim_script_number(script, "maxbuffer", limits->maxBufferSize);
    }
    if (item->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES) {
      VkPhysicalDeviceDriverProperties *driver = (void *)item;
      driver->driverID = (VkDriverId)shim_script_number(script, "driver", (uint64_t)driver->driverID);
      if (shim_script_is(script, "hostile", "names")) memset(driver->driverInfo, 'A', sizeof driver->driverInfo);
    }
  }
}

static void physical_limits(VkPhysicalDeviceLimits *limits) {
  if (shim_script_has(&sim.script, "sparse")) {
    limits->sparseAddressSpaceSize = shim_script_number(&sim.script, "space", UINT64_C(1) << 40);
  }
  limits->nonCoherentAtomSize = shim_script_number(&sim.script, "atom", limits->nonCoherentAtomSize);
  limits->maxMemoryAllocationCount =
      (uint32_t)shim_script_number(&sim.script, "count", limits->maxMemoryAllocationCount);
  const bool crooked = shim_script_is(&sim.script, "hostile", "crooked");
  if (!crooked && !shim_script_is(&sim.script, "hostile", "alignment")) return;
  const uint64_t value = crooked ? 37 : 0;
  limits->nonCoherentAtomSize = limits->minStorageBufferOffsetAlignment = limits->minUniformBufferOffsetAlignment =
      limits->minTexelBufferOffsetAlignment = value;
}

static void physical_name(char name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE]) {
  static const char mark[] = " (simulated)";
  const size_t length = strnlen(name, VK_MAX_PHYSICAL_DEVICE_NAME_SIZE - sizeof mark);
  memcpy(name + length, mark, sizeof mark);
  if (shim_script_is(&sim.script, "hostile", "names")) memset(name, 'A', VK_MAX_PHYSICAL_DEVICE_NAME_SIZE);
}

void sim_properties(VkPhysicalDevice physical, VkPhysicalDeviceProperties2 *out) {
  const sim_physical *played = physical_of(physical);
  VkPhysicalDeviceProperties *props = &out->properties;
  sim.real.vkGetPhysicalDeviceProperties2(played->real, out);
  if (shim_script_is(&sim.script, "type", "discrete")) props->deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  if (shim_script_is(&sim.script, "type", "integrated")) props->deviceType = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  if (shim_script_is(&sim.script, "type", "nonsense")) props->deviceType = (VkPhysicalDeviceType)99;
  if (shim_script_is(&sim.script, "api", "1.0")) props->apiVersion = VK_API_VERSION_1_0;
  if (shim_script_is(&sim.script, "api", "1.1")) props->apiVersion = VK_API_VERSION_1_1;
  physical_name(props->deviceName);
  physical_limits(&props->limits);
  physical_chain(played, out->pNext);
}

void sim_features(VkPhysicalDevice physical, VkPhysicalDeviceFeatures2 *out) {
  sim.real.vkGetPhysicalDeviceFeatures2(physical_of(physical)->real, out);
  if (shim_script_has(&sim.script, "sparse")) {
    out->features.sparseBinding = out->features.sparseResidencyBuffer = VK_TRUE;
  }
  for (VkBaseOutStructure *item = out->pNext; item; item = item->pNext) {
    if (item->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES) {
      VkPhysicalDeviceTimelineSemaphoreFeatures *timeline = (void *)item;
      if (shim_script_has(&sim.script, "no_timeline")) timeline->timelineSemaphore = VK_FALSE;
    }
    if (item->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES) {
      VkPhysicalDeviceBufferDeviceAddressFeatures *address = (void *)item;
      if (shim_script_has(&sim.script, "no_address")) address->bufferDeviceAddress = VK_FALSE;
    }
  }
}

void sim_families(VkPhysicalDevice physical, uint32_t *count, VkQueueFamilyProperties *out) {
  if (shim_script_is(&sim.script, "hostile", "families")) {
    *count = 0;
    return;
  }
  sim.real.vkGetPhysicalDeviceQueueFamilyProperties(physical_of(physical)->real, count, out);
  if (out && *count && shim_script_has(&sim.script, "sparse")) out[0].queueFlags |= VK_QUEUE_SPARSE_BINDING_BIT;
  if (shim_script_is(&sim.script, "hostile", "counts")) *count = UINT32_MAX;
}
