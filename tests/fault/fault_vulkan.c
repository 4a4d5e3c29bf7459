/* Wrappers of every Vulkan entry, made from its symbol table. */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "backends/vulkan/vulkan_syms.h"
#include "fault/fault.h"
#include "fault/kept_device.h"

enum {
#define X(level, need, fault, name, result, params, args) VULKAN_##name,
#include "backends/vulkan/vulkan_syms.def"
  VULKAN_ENTRIES
};

_Static_assert((int)VULKAN_ENTRIES <= (int)FAULT_ENTRIES_MAX, "room for every entry");

static const char *const vulkan_names[] = {
#define X(level, need, fault, name, result, params, args) #name,
#include "backends/vulkan/vulkan_syms.def"
};

/* A missing entry is another test: test_vulkan_faults. */
enum { CODE = true, POINTER = false, ADDRESS = false, NONE = false };
static const bool vulkan_can_fail[] = {
#define X(level, need, fault, name, result, params, args) fault,
#include "backends/vulkan/vulkan_syms.def"
};

static const int32_t vulkan_codes[] = {VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_DEVICE_LOST,
                                       VK_ERROR_UNKNOWN, 0};

static void *vulkan_wrap(const char *symbol, void *real);
static fault_driver vulkan_driver = {.backend = "vulkan",
                                     .count = VULKAN_ENTRIES,
                                     .names = vulkan_names,
                                     .can_fail = vulkan_can_fail,
                                     .codes = vulkan_codes,
                                     .lost = VK_ERROR_DEVICE_LOST,
                                     .wrap = vulkan_wrap};
fault_driver *const fault_vulkan = &vulkan_driver;

static gm__vulkan_syms vulkan_real;

/* Command buffers go with their pool and are not counted. */
static void vulkan_account(unsigned entry) {
  const char *name = vulkan_names[entry];
  if (strncmp(name, "vkCreate", 8) == 0 || strcmp(name, "vkAllocateMemory") == 0) {
    atomic_fetch_add(&vulkan_driver.live, 1);
  }
  if (strncmp(name, "vkDestroy", 9) == 0 || strcmp(name, "vkFreeMemory") == 0) atomic_fetch_sub(&vulkan_driver.live, 1);
}

/* A lost device has nothing running. The driver under a played loss lives on: it does its work at once then. */
static void vulkan_settle(unsigned entry, const void *first) {
  static PFN_vkQueueWaitIdle wait;
  if (!fault_now.lost_call || entry != VULKAN_vkQueueSubmit) return;
  void *loader = wait ? NULL : dlopen("libvulkan.so.1", RTLD_NOW | RTLD_NOLOAD);
  void *symbol = loader ? dlsym(loader, "vkQueueWaitIdle") : NULL;
  if (symbol) memcpy(&wait, &symbol, sizeof wait);
  VkQueue queue;
  memcpy(&queue, &first, sizeof queue);
  if (wait) wait(queue);
}

#define WRAP_FIRST_OF(first, ...) first
#define WRAP_FIRST(...) WRAP_FIRST_OF(__VA_ARGS__, 0)

#define WRAP_CODE(name, args)                                                     \
  if (fault_hits(&vulkan_driver, VULKAN_##name)) return (VkResult)fault_now.code; \
  const VkResult answer = vulkan_real.name args;                                  \
  if (answer == VK_SUCCESS) vulkan_account(VULKAN_##name);                        \
  if (answer == VK_SUCCESS) vulkan_settle(VULKAN_##name, WRAP_FIRST args);        \
  return answer;
#define WRAP_POINTER(name, args)             \
  fault_hits(&vulkan_driver, VULKAN_##name); \
  return vulkan_real.name args;
#define WRAP_ADDRESS WRAP_POINTER
#define WRAP_NONE(name, args)                \
  fault_hits(&vulkan_driver, VULKAN_##name); \
  vulkan_real.name args;                     \
  vulkan_account(VULKAN_##name);
#define X(level, need, fault, name, result, params, args) \
  static VKAPI_ATTR result VKAPI_CALL wrapped_##name params { WRAP_##fault(name, args) }
#include "backends/vulkan/vulkan_syms.def"

typedef struct vulkan_entry {
  size_t offset;
  PFN_vkVoidFunction wrapper;
} vulkan_entry;

static const vulkan_entry vulkan_entries[] = {
#define X(level, need, fault, name, result, params, args) \
  {offsetof(gm__vulkan_syms, name), (PFN_vkVoidFunction)wrapped_##name},
#include "backends/vulkan/vulkan_syms.def"
};

static void *vulkan_wrap(const char *symbol, void *real) {
  for (unsigned i = 0; i < VULKAN_ENTRIES; i++) {
    if (strcmp(symbol, vulkan_names[i]) != 0) continue;
    real = kept_device_entry(symbol, real);
    memcpy((char *)&vulkan_real + vulkan_entries[i].offset, &real, sizeof real);
    memcpy(&real, &vulkan_entries[i].wrapper, sizeof real);
    return real;
  }
  return real;
}
