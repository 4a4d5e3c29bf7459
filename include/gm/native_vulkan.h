/* Vulkan objects that an engine lends to gm or asks gm for. Dispatchable handles are cast to uintptr_t, the others are
 * uint64_t. Nothing of it is retained by the API: the engine keeps instance and device alive until gm's device is
 * closed. gm destroys nothing that it was lent. */
#ifndef GM_NATIVE_VULKAN_H
#define GM_NATIVE_VULKAN_H

#include <stdbool.h>

#include "gm/native.h"

GM_BEGIN_DECLS

typedef enum gm_vulkan_feature { /* what the engine enabled on its VkDevice */
                                 GM_VULKAN_TIMELINE_SEMAPHORE = 1,
                                 GM_VULKAN_SYNCHRONIZATION2 = 2,
                                 GM_VULKAN_BUFFER_DEVICE_ADDRESS = 4,
                                 GM_VULKAN_MEMORY_BUDGET = 8,
                                 GM_VULKAN_DEDICATED_ALLOCATION = 16, /* core since 1.1 */
                                 GM_VULKAN_EXTERNAL_MEMORY_FD = 32,
                                 GM_VULKAN_EXTERNAL_MEMORY_DMA_BUF = 64, /* and EXTERNAL_MEMORY_FD */
                                 GM_VULKAN_SPARSE_BUFFERS = 128          /* sparseBinding and sparseResidencyBuffer */
} gm_vulkan_feature;

typedef struct gm_vulkan_device {
  gm_native_device head;          /* {sizeof(gm_vulkan_device), GM_API_VULKAN} */
  uintptr_t instance;             /* VkInstance */
  uintptr_t physical_device;      /* VkPhysicalDevice */
  uintptr_t device;               /* VkDevice */
  uintptr_t get_instance_proc;    /* PFN_vkGetInstanceProcAddr; 0: gm loads libvulkan.so.1 */
  uint32_t api_version;           /* the version the instance was created for, VK_MAKE_API_VERSION */
  uint32_t features;              /* gm_vulkan_feature bits */
  uint32_t queue_family_count;    /* copied, not kept; 1 to 8 */
  const uint32_t *queue_families; /* families whose queues will touch gm's buffers; more than one: CONCURRENT sharing */
} gm_vulkan_device;

/* A queue of the engine. lock and unlock are called around every use of the queue (submission, wait); both or neither.
 * They are called from any thread and with no lock of gm held, so they may wait, and may call gm. Under its own lock of
 * the queue an engine may call gm: what does not need the queue returns. gm_free does not (docs/threads.md).
 * With GM_VULKAN_SPARSE_BUFFERS a pool may bind its pages on the queue, while its turn at them is held: there a hook
 * may free blocks, but ask no pool of the device for memory, and other threads' growth of that pool waits for it.
 * may_submit false: gm records and submits nothing there; copies through this stream answer GM_ERR_NOT_SUPPORTED, and
 * points on it are the engine's own (gm_stream_import_point). What was freed on it comes back by gm_stream_passed. */
typedef struct gm_vulkan_queue {
  gm_native_stream head; /* {sizeof(gm_vulkan_queue), GM_API_VULKAN} */
  uintptr_t queue;       /* VkQueue */
  uint32_t family;
  bool may_submit;
  void (*lock)(void *user);
  void (*unlock)(void *user);
  void *user;
} gm_vulkan_queue;

/* A place in a stream's order: reached when the timeline semaphore has counted to value. */
typedef struct gm_vulkan_point {
  gm_native_point head; /* {sizeof(gm_vulkan_point), GM_API_VULKAN} */
  uint64_t semaphore;   /* VkSemaphore of type timeline, the engine's; outlives the point */
  uint64_t value;
} gm_vulkan_point;

typedef struct gm_vulkan_memory {
  gm_native_memory head;   /* {sizeof(gm_vulkan_memory), GM_API_VULKAN} */
  uint32_t memory_type;    /* index into VkPhysicalDeviceMemoryProperties.memoryTypes */
  uint64_t memory;         /* VkDeviceMemory; 0: the buffer is sparse, and many may be behind it */
  uint64_t memory_offset;  /* bytes from the start of `memory` to the block */
  uint64_t buffer;         /* VkBuffer that covers the block */
  uint64_t buffer_offset;  /* bytes from the start of `buffer` to the block */
  uint64_t bytes;          /* of the block, not of `buffer` or `memory`, in which other blocks may lie */
  uint64_t device_address; /* 0: not available */
  void *mapped;            /* host address of the block; NULL until somebody maps this VkDeviceMemory */
  uint64_t buffer_bytes;   /* out: of `buffer` as a whole; it is the block alone where `buffer_offset` is 0 and this is
                              `bytes`. 0: the engine's, which only the engine knows */
  uint64_t memory_bytes;   /* out: of `memory` as a whole; 0: sparse, or the engine's, which only the engine knows */
} gm_vulkan_memory;

GM_END_DECLS

#endif
