/* Inside the simulated Vulkan driver: the real loader behind a script (../shim/README.md). Every entry of gm's table
 * goes through a wrapper that counts it and can fail it; those listed in sim_play are changed on the way. */
#ifndef GM_TESTS_SIMULATED_VULKAN_SIM_VULKAN_H
#define GM_TESTS_SIMULATED_VULKAN_SIM_VULKAN_H

#include <pthread.h>

#include "backends/vulkan/vulkan_syms.h"
#include "simulated/shim/script.h"

enum { SIM_DEVICES = 64, SIM_HEAPS = 4 };

/* The object that is handed out as a VkPhysicalDevice: a real one and which of its copies this is. */
typedef struct sim_physical {
  VkPhysicalDevice real;
  VkInstance instance;
  uint32_t index;
  struct sim_physical *next;
} sim_physical;

/* Beside each real VkDevice. */
typedef struct sim_device {
  VkDevice handle;
  uint32_t index;
  VkQueue queue;
  uint64_t submits;
  uint32_t live; /* allocations */
  struct sim_device *next;
} sim_device;

typedef struct sim_state {
  gm__vulkan_syms real;
  shim_script script; /* read when gm starts the driver */
  pthread_mutex_t mutex;
  sim_physical *physicals;
  sim_device *devices;
  uint64_t held[SIM_DEVICES][SIM_HEAPS]; /* bytes allocated by this process */
} sim_state;

extern sim_state sim;

/* The entry that replaces the real one; NULL: the real one. */
extern const gm__vulkan_syms sim_play;

/* null=NAME: a success without a result. */
bool sim_null(const char *name);

/* Beside `handle`, or the device that has this queue; NULL. Under the mutex. */
sim_device *sim_device_find(VkDevice handle);
sim_device *sim_device_of_queue(VkQueue queue);

/* The work of every device has ended: what a lost device, or one that cannot be waited for, has in common with none. */
void sim_settle(void);

/* The memory that the script gives the card; total 0, counts without end and the like on request. */
void sim_memory_layout(VkPhysicalDeviceMemoryProperties *out);

/* sim_physical.c */
VkResult sim_create_instance(const VkInstanceCreateInfo *info, const VkAllocationCallbacks *callbacks, VkInstance *out);
void sim_destroy_instance(VkInstance instance, const VkAllocationCallbacks *callbacks);
VkResult sim_enumerate(VkInstance instance, uint32_t *count, VkPhysicalDevice *out);
VkResult sim_extensions(VkPhysicalDevice physical, const char *layer, uint32_t *count, VkExtensionProperties *out);
void sim_properties(VkPhysicalDevice physical, VkPhysicalDeviceProperties2 *out);
void sim_features(VkPhysicalDevice physical, VkPhysicalDeviceFeatures2 *out);
void sim_memory_properties(VkPhysicalDevice physical, VkPhysicalDeviceMemoryProperties2 *out);
void sim_families(VkPhysicalDevice physical, uint32_t *count, VkQueueFamilyProperties *out);

/* sim_device.c */
VkResult sim_create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
                           const VkAllocationCallbacks *callbacks, VkDevice *out);
void sim_destroy_device(VkDevice device, const VkAllocationCallbacks *callbacks);
void sim_get_queue(VkDevice device, uint32_t family, uint32_t index, VkQueue *out);
VkResult sim_submit(VkQueue queue, uint32_t count, const VkSubmitInfo *infos, VkFence fence);
VkResult sim_wait(VkDevice device, const VkSemaphoreWaitInfo *info, uint64_t timeout_ns);
VkResult sim_counter(VkDevice device, VkSemaphore semaphore, uint64_t *out);
VkResult sim_create_semaphore(VkDevice device, const VkSemaphoreCreateInfo *info,
                              const VkAllocationCallbacks *callbacks, VkSemaphore *out);
VkResult sim_create_command_pool(VkDevice device, const VkCommandPoolCreateInfo *info,
                                 const VkAllocationCallbacks *callbacks, VkCommandPool *out);
VkResult sim_allocate_commands(VkDevice device, const VkCommandBufferAllocateInfo *info, VkCommandBuffer *out);

VkResult sim_bind_sparse(VkQueue queue, uint32_t count, const VkBindSparseInfo *infos, VkFence fence);
VkResult sim_wait_fences(VkDevice device, uint32_t count, const VkFence *fences, VkBool32 all, uint64_t timeout_ns);
VkResult sim_create_fence(VkDevice device, const VkFenceCreateInfo *info, const VkAllocationCallbacks *callbacks,
                          VkFence *out);

/* sim_sparse.c */
uint64_t sim_granule(void);
bool sim_sparse_is(VkBuffer buffer);
VkResult sim_sparse_create(VkDevice device, const VkBufferCreateInfo *info, VkBuffer *out);
void sim_sparse_bind(const VkBindSparseInfo *info);
void sim_sparse_freed(VkDeviceMemory memory); /* under the mutex */
void sim_destroy_buffer(VkDevice device, VkBuffer handle, const VkAllocationCallbacks *callbacks);

/* sim_share.c */
void sim_external_properties(VkPhysicalDevice physical, const VkPhysicalDeviceExternalBufferInfo *info,
                             VkExternalBufferProperties *out);
const void *sim_share_buffer(const VkBufferCreateInfo *info, VkExternalMemoryBufferCreateInfo *room);
void sim_share_memory(VkMemoryAllocateInfo *info);
VkResult sim_host_types(VkDevice device, VkExternalMemoryHandleTypeFlagBits kind, const void *pointer,
                        VkMemoryHostPointerPropertiesEXT *out);
bool sim_share_is_host(const VkMemoryAllocateInfo *info);
VkResult sim_get_fd(VkDevice device, const VkMemoryGetFdInfoKHR *info, int *out);
VkResult sim_fd_properties(VkDevice device, VkExternalMemoryHandleTypeFlagBits kind, int fd,
                           VkMemoryFdPropertiesKHR *out);

/* sim_memory.c. The first two: under the mutex, for what is bound to a sparse buffer. */
unsigned char *sim_memory_host(VkDeviceMemory memory);
uint64_t sim_memory_bytes(VkDeviceMemory memory);
VkDeviceAddress sim_buffer_address(VkDevice device, const VkBufferDeviceAddressInfo *info);
VkResult sim_allocate(VkDevice device, const VkMemoryAllocateInfo *info, const VkAllocationCallbacks *callbacks,
                      VkDeviceMemory *out);
void sim_free(VkDevice device, VkDeviceMemory memory, const VkAllocationCallbacks *callbacks);
VkResult sim_map(VkDevice device, VkDeviceMemory memory, VkDeviceSize offset, VkDeviceSize bytes,
                 VkMemoryMapFlags flags, void **out);
VkResult sim_flush(VkDevice device, uint32_t count, const VkMappedMemoryRange *ranges);
VkResult sim_invalidate(VkDevice device, uint32_t count, const VkMappedMemoryRange *ranges);
VkResult sim_create_buffer(VkDevice device, const VkBufferCreateInfo *info, const VkAllocationCallbacks *callbacks,
                           VkBuffer *out);
void sim_needs(VkDevice device, const VkBufferMemoryRequirementsInfo2 *info, VkMemoryRequirements2 *out);

#endif
