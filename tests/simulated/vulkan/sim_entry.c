#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "simulated/vulkan/sim_vulkan.h"

/* Every entry that gm calls has a wrapper here. Entries that are not listed in vulkan_syms.def go to the real loader,
 * unless they take a VkPhysicalDevice. That is not a real one here: then there is no such entry. */

#define SIM_EXPORT __attribute__((visibility("default")))

sim_state sim = {.mutex = PTHREAD_MUTEX_INITIALIZER};

typedef enum entry_number {
#define X(level, need, fault, name, result, params, args) ENTRY_##name,
#include "backends/vulkan/vulkan_syms.def"
  ENTRY_COUNT
} entry_number;

static _Atomic uint64_t entry_calls[ENTRY_COUNT];

bool sim_null(const char *name) { return shim_script_is(&sim.script, "null", name); }

/* Counts the call; true: it fails with *out_code. */
static bool entry_fails(entry_number number, const char *name, int *out_code) {
  const uint64_t nth = atomic_fetch_add(&entry_calls[number], 1) + 1;
  if (!shim_script_fails(&sim.script, name, nth, out_code)) return false;
  if (*out_code == VK_ERROR_DEVICE_LOST || number == ENTRY_vkWaitSemaphores) sim_settle();
  return true;
}

#define ENTRY_REAL(name) (sim_play.name ? sim_play.name : sim.real.name)
#define ENTRY_CODE(name, result, params, args)                        \
  static VKAPI_ATTR result VKAPI_CALL entry_##name params {           \
    int code = VK_ERROR_UNKNOWN;                                      \
    if (entry_fails(ENTRY_##name, #name, &code)) return (result)code; \
    return ENTRY_REAL(name) args;                                     \
  }
#define ENTRY_POINTER(name, result, params, args)             \
  static VKAPI_ATTR result VKAPI_CALL entry_##name params {   \
    int code = 0;                                             \
    if (entry_fails(ENTRY_##name, #name, &code)) return NULL; \
    return ENTRY_REAL(name) args;                             \
  }
#define ENTRY_ADDRESS(name, result, params, args)           \
  static VKAPI_ATTR result VKAPI_CALL entry_##name params { \
    int code = 0;                                           \
    if (entry_fails(ENTRY_##name, #name, &code)) return 0;  \
    return ENTRY_REAL(name) args;                           \
  }
#define ENTRY_NONE(name, result, params, args) \
  static VKAPI_ATTR result VKAPI_CALL entry_##name params { ENTRY_REAL(name) args; }

#define X(level, need, fault, name, result, params, args) ENTRY_##fault(name, result, params, args)
#include "backends/vulkan/vulkan_syms.def"

static const struct entry_row {
  const char *name;
  PFN_vkVoidFunction wrapper;
  size_t offset; /* in the table of real ones */
} entry_rows[] = {
#define X(level, need, fault, name, result, params, args) \
  {#name, (PFN_vkVoidFunction)entry_##name, offsetof(gm__vulkan_syms, name)},
#include "backends/vulkan/vulkan_syms.def"
};

static const struct entry_row *entry_find(const char *name) {
  for (size_t i = 0; i < ENTRY_COUNT; i++) {
    if (strcmp(entry_rows[i].name, name) == 0) return &entry_rows[i];
  }
  return NULL;
}

static PFN_vkVoidFunction *entry_slot(const struct entry_row *row) {
  return (PFN_vkVoidFunction *)(void *)((char *)&sim.real + row->offset);
}

static void entry_open_real(void) {
  void *library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  void *symbol = library ? dlsym(library, "vkGetInstanceProcAddr") : NULL;
  if (symbol) memcpy(&sim.real.vkGetInstanceProcAddr, &symbol, sizeof symbol);
}

/* gm looks vkCreateInstance up each time it starts the driver. */
static void entry_start(void) {
  pthread_mutex_lock(&sim.mutex);
  shim_script_read(&sim.script, "SIMVK");
  for (size_t i = 0; i < ENTRY_COUNT; i++) atomic_store(&entry_calls[i], 0);
  pthread_mutex_unlock(&sim.mutex);
}

static PFN_vkVoidFunction entry_from_instance(VkInstance instance, const char *name) {
  if (!instance && strcmp(name, "vkCreateInstance") == 0) entry_start();
  const struct entry_row *row = entry_find(name);
  PFN_vkVoidFunction found = sim.real.vkGetInstanceProcAddr(instance, name);
  if (!row) return strstr(name, "PhysicalDevice") ? NULL : found;
  if (!found) return NULL;
  *entry_slot(row) = found;
  return row->wrapper;
}

static PFN_vkVoidFunction entry_from_device(VkDevice device, const char *name) {
  const struct entry_row *row = entry_find(name);
  PFN_vkVoidFunction found = sim.real.vkGetDeviceProcAddr(device, name);
  if (!row || !found) return found;
  /* The loader's own entry serves every device; a device's serves but that one. */
  PFN_vkVoidFunction any = *entry_slot(row);
  for (const sim_physical *at = sim.physicals; at && !any; at = at->next) {
    any = sim.real.vkGetInstanceProcAddr(at->instance, name);
  }
  if (!any) return NULL;
  *entry_slot(row) = any;
  return row->wrapper;
}

const gm__vulkan_syms sim_play = {.vkGetInstanceProcAddr = entry_from_instance,
                                  .vkGetDeviceProcAddr = entry_from_device,
                                  .vkCreateInstance = sim_create_instance,
                                  .vkDestroyInstance = sim_destroy_instance,
                                  .vkEnumeratePhysicalDevices = sim_enumerate,
                                  .vkEnumerateDeviceExtensionProperties = sim_extensions,
                                  .vkGetPhysicalDeviceProperties2 = sim_properties,
                                  .vkGetPhysicalDeviceFeatures2 = sim_features,
                                  .vkGetPhysicalDeviceMemoryProperties2 = sim_memory_properties,
                                  .vkGetPhysicalDeviceQueueFamilyProperties = sim_families,
                                  .vkCreateDevice = sim_create_device,
                                  .vkDestroyDevice = sim_destroy_device,
                                  .vkGetDeviceQueue = sim_get_queue,
                                  .vkQueueSubmit = sim_submit,
                                  .vkWaitSemaphores = sim_wait,
                                  .vkGetSemaphoreCounterValue = sim_counter,
                                  .vkCreateSemaphore = sim_create_semaphore,
                                  .vkCreateCommandPool = sim_create_command_pool,
                                  .vkAllocateCommandBuffers = sim_allocate_commands,
                                  .vkAllocateMemory = sim_allocate,
                                  .vkFreeMemory = sim_free,
                                  .vkMapMemory = sim_map,
                                  .vkFlushMappedMemoryRanges = sim_flush,
                                  .vkInvalidateMappedMemoryRanges = sim_invalidate,
                                  .vkCreateBuffer = sim_create_buffer,
                                  .vkDestroyBuffer = sim_destroy_buffer,
                                  .vkGetBufferDeviceAddress = sim_buffer_address,
                                  .vkQueueBindSparse = sim_bind_sparse,
                                  .vkCreateFence = sim_create_fence,
                                  .vkWaitForFences = sim_wait_fences,
                                  .vkGetPhysicalDeviceExternalBufferProperties = sim_external_properties,
                                  .vkGetMemoryHostPointerPropertiesEXT = sim_host_types,
                                  .vkGetMemoryFdKHR = sim_get_fd,
                                  .vkGetMemoryFdPropertiesKHR = sim_fd_properties,
                                  .vkGetBufferMemoryRequirements2 = sim_needs};

SIM_EXPORT VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance, const char *name);
SIM_EXPORT VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance, const char *name) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, entry_open_real);
  return sim.real.vkGetInstanceProcAddr ? entry_vkGetInstanceProcAddr(instance, name) : NULL;
}

/* gm looks for this to mark the driver as simulated; it is never called. */
SIM_EXPORT void gmSimulatedDriver(void);
SIM_EXPORT void gmSimulatedDriver(void) {}
