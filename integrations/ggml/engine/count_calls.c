/* Counts the memory calls that a Vulkan program makes. Load it by LD_PRELOAD; it reports when the process ends.
 *
 * The program and gm must take their entries from vkGetInstanceProcAddr or vkGetDeviceProcAddr. */
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <vulkan/vulkan.h>

enum { LIVE_MAX = 4096 };

static struct {
  pthread_mutex_t lock;
  VkDeviceMemory memories[LIVE_MAX];
  VkDeviceSize sizes[LIVE_MAX];
  uint64_t allocations, by_gm, failures, frees, buffers, maps, nanoseconds, bytes, live_bytes, peak_bytes, untracked;
} count = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

/* The loader's own entry. */
static PFN_vkVoidFunction next(const char *name) {
  static void *loader; /* every thread finds the same */
  if (!loader) loader = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  void *found = loader ? dlsym(loader, name) : NULL;
  PFN_vkVoidFunction entry;
  memcpy(&entry, &found, sizeof entry);
  return entry;
}

static int is_gm(void *caller) {
  Dl_info info;
  return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "libgm.so") != NULL;
}

/* Finds the place of a memory, or a free one for NULL. LIVE_MAX: there is none. */
static size_t place_of(VkDeviceMemory memory) {
  size_t i = 0;
  while (i < LIVE_MAX && count.memories[i] != memory) ++i;
  return i;
}

static void note_allocation(VkDeviceMemory memory, VkDeviceSize bytes, int by_gm, uint64_t took) {
  const size_t i = place_of(VK_NULL_HANDLE);
  if (i < LIVE_MAX) {
    count.memories[i] = memory;
    count.sizes[i] = bytes;
  } else {
    ++count.untracked;
  }
  ++count.allocations;
  count.by_gm += (uint64_t)by_gm;
  count.nanoseconds += took;
  count.bytes += bytes;
  count.live_bytes += bytes;
  if (count.live_bytes > count.peak_bytes) count.peak_bytes = count.live_bytes;
}

static VKAPI_ATTR VkResult VKAPI_CALL allocate(VkDevice device, const VkMemoryAllocateInfo *info,
                                               const VkAllocationCallbacks *callbacks, VkDeviceMemory *out) {
  const PFN_vkAllocateMemory real = (PFN_vkAllocateMemory)next("vkAllocateMemory");
  const int by_gm = is_gm(__builtin_return_address(0));
  const uint64_t begin = now();
  const VkResult result = real(device, info, callbacks, out);
  const uint64_t took = now() - begin;
  pthread_mutex_lock(&count.lock);
  if (result == VK_SUCCESS)
    note_allocation(*out, info->allocationSize, by_gm, took);
  else
    ++count.failures;
  pthread_mutex_unlock(&count.lock);
  return result;
}

static VKAPI_ATTR void VKAPI_CALL release(VkDevice device, VkDeviceMemory memory,
                                          const VkAllocationCallbacks *callbacks) {
  const PFN_vkFreeMemory real = (PFN_vkFreeMemory)next("vkFreeMemory");
  if (memory) {
    pthread_mutex_lock(&count.lock);
    const size_t i = place_of(memory);
    ++count.frees;
    if (i < LIVE_MAX) {
      count.live_bytes -= count.sizes[i];
      count.memories[i] = VK_NULL_HANDLE;
    }
    pthread_mutex_unlock(&count.lock);
  }
  real(device, memory, callbacks);
}

static void add_one(uint64_t *figure) {
  pthread_mutex_lock(&count.lock);
  ++*figure;
  pthread_mutex_unlock(&count.lock);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_buffer(VkDevice device, const VkBufferCreateInfo *info,
                                                    const VkAllocationCallbacks *callbacks, VkBuffer *out) {
  add_one(&count.buffers);
  return ((PFN_vkCreateBuffer)next("vkCreateBuffer"))(device, info, callbacks, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL map(VkDevice device, VkDeviceMemory memory, VkDeviceSize offset,
                                          VkDeviceSize bytes, VkMemoryMapFlags flags, void **out) {
  add_one(&count.maps);
  return ((PFN_vkMapMemory)next("vkMapMemory"))(device, memory, offset, bytes, flags, out);
}

/* The entry that takes another's place, or NULL. */
static PFN_vkVoidFunction ours(const char *name) {
  if (strcmp(name, "vkAllocateMemory") == 0) return (PFN_vkVoidFunction)allocate;
  if (strcmp(name, "vkFreeMemory") == 0) return (PFN_vkVoidFunction)release;
  if (strcmp(name, "vkCreateBuffer") == 0) return (PFN_vkVoidFunction)create_buffer;
  if (strcmp(name, "vkMapMemory") == 0) return (PFN_vkVoidFunction)map;
  if (strcmp(name, "vkGetInstanceProcAddr") == 0) return (PFN_vkVoidFunction)vkGetInstanceProcAddr;
  if (strcmp(name, "vkGetDeviceProcAddr") == 0) return (PFN_vkVoidFunction)vkGetDeviceProcAddr;
  return NULL;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance, const char *name) {
  const PFN_vkGetInstanceProcAddr real = (PFN_vkGetInstanceProcAddr)next("vkGetInstanceProcAddr");
  const PFN_vkVoidFunction found = ours(name);
  return found ? found : real(instance, name);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetDeviceProcAddr(VkDevice device, const char *name) {
  const PFN_vkGetDeviceProcAddr real = (PFN_vkGetDeviceProcAddr)next("vkGetDeviceProcAddr");
  const PFN_vkVoidFunction found = ours(name);
  return found ? found : real(device, name);
}

__attribute__((destructor)) static void report(void) {
  fprintf(stderr,
          "vulkan memory: %" PRIu64 " allocations (%" PRIu64 " by gm, %" PRIu64 " more failed), %" PRIu64
          " frees, %" PRIu64 " buffers, %" PRIu64 " maps, %" PRIu64 " bytes, peak %" PRIu64 " bytes, %" PRIu64
          " us in vkAllocateMemory\n",
          count.allocations, count.by_gm, count.failures, count.frees, count.buffers, count.maps, count.bytes,
          count.peak_bytes, count.nanoseconds / 1000);
  if (count.untracked) fprintf(stderr, "vulkan memory: %" PRIu64 " allocations too many to follow\n", count.untracked);
}
