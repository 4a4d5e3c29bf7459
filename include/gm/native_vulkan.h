/* Vulkan objects that an engine lends to gm, or asks gm for. Dispatchable handles are cast to uintptr_t; the others are
 * uint64_t. Vulkan counts no references: the engine keeps instance and device alive until gm's device is closed. gm
 * destroys nothing that it was lent. */
#ifndef GM_NATIVE_VULKAN_H
#define GM_NATIVE_VULKAN_H

#include <stdbool.h>

#include "gm/native.h"

GM_BEGIN_DECLS

/* Features that the engine enabled on its VkDevice. */
typedef enum gm_vulkan_feature {
  GM_VULKAN_TIMELINE_SEMAPHORE = 1,
  GM_VULKAN_SYNCHRONIZATION2 = 2,
  GM_VULKAN_BUFFER_DEVICE_ADDRESS = 4,
  GM_VULKAN_MEMORY_BUDGET = 8,
  GM_VULKAN_DEDICATED_ALLOCATION = 16, /* core since 1.1 */
  GM_VULKAN_EXTERNAL_MEMORY_FD = 32,
  GM_VULKAN_EXTERNAL_MEMORY_DMA_BUF = 64, /* needs EXTERNAL_MEMORY_FD, too */
  GM_VULKAN_SPARSE_BUFFERS = 128,         /* sparseBinding and sparseResidencyBuffer */
  GM_VULKAN_MEMORY_PRIORITY = 256,        /* VK_EXT_memory_priority, and its feature memoryPriority */
  GM_VULKAN_EXTERNAL_MEMORY_HOST = 512    /* VK_EXT_external_memory_host */
} gm_vulkan_feature;

/* Which queue families own gm's buffers. */
typedef enum gm_vulkan_sharing {
  GM_VULKAN_SHARING_BY_FAMILIES = 0, /* EXCLUSIVE with one family in `queue_families`, else CONCURRENT */
  GM_VULKAN_SHARING_EXCLUSIVE = 1,   /* one family at a time. The engine transfers ownership between families. gm
                                        transfers none: copy a block on a stream of the family that owns it */
  GM_VULKAN_SHARING_CONCURRENT = 2   /* all of `queue_families`, which must be two or more */
} gm_vulkan_sharing;

/* gm needs no feature of the device. Without GM_VULKAN_TIMELINE_SEMAPHORE gm tells by fences how far a queue is. Then
 * no queue waits for another one: gm_stream_wait answers NOT_SUPPORTED while that work has not passed. The host can
 * wait (gm_point_wait), and pools serve other memory.
 *
 * gm makes no images. To bind one, call vkBindImageMemory with `memory` and `memory_offset` of gm_vulkan_memory. The
 * block's memory type must be one that the image allows. gm knows neither bufferImageGranularity nor layouts. */
typedef struct gm_vulkan_device {
  gm_native_device head;          /* {sizeof(gm_vulkan_device), GM_API_VULKAN} */
  uintptr_t instance;             /* VkInstance */
  uintptr_t physical_device;      /* VkPhysicalDevice */
  uintptr_t device;               /* VkDevice */
  uintptr_t get_instance_proc;    /* PFN_vkGetInstanceProcAddr: gm uses no library and makes no instance. 0: gm loads
                                     libvulkan.so.1 and makes an instance of its own */
  uint32_t api_version;           /* the version that the instance was created for, VK_MAKE_API_VERSION */
  uint32_t features;              /* gm_vulkan_feature bits */
  uint32_t queue_family_count;    /* 1 to 8; gm copies the families */
  const uint32_t *queue_families; /* families of the queues that will use gm's buffers */
  gm_vulkan_sharing sharing;      /* the sharing mode of gm's buffers */
  uint32_t buffer_usage;          /* VkBufferUsageFlags for gm's buffers, beside those that gm gives each: transfer,
                                     storage, uniform, indirect, and address where the feature is there */
} gm_vulkan_device;

/* A queue of the engine. gm calls `lock` before every use of the queue (submission, wait), and `unlock` after it. Set
 * both or neither. gm calls them from any thread, and holds no lock of its own. So they may wait, and may call gm.
 *
 * An engine that holds its own lock of the queue may call gm: a call that does not need the queue returns. gm_free does
 * not need it (docs/threads.md).
 *
 * The hooks must not throw. With GM_VULKAN_SPARSE_BUFFERS a pool may bind its pages on the queue. It then holds the
 * turn to bind. There a hook may free blocks, but may ask no pool of the device for memory. Other threads wait with the
 * growth of that pool.
 *
 * With may_submit false gm records and submits nothing to the queue. Copies through this stream answer NOT_SUPPORTED.
 * Points on it are the engine's own (gm_stream_import_point). Memory that was freed on it comes back by
 * gm_stream_passed. */
typedef struct gm_vulkan_queue {
  gm_native_stream head; /* {sizeof(gm_vulkan_queue), GM_API_VULKAN} */
  uintptr_t queue;       /* VkQueue */
  uint32_t family;
  bool may_submit;
  void (*lock)(void *user);
  void (*unlock)(void *user);
  void *user;
} gm_vulkan_queue;

/* A place in a stream's order. Either the timeline semaphore has counted to `value`, or the fence is signalled. The
 * engine sets one of them; it is the engine's, and outlives the point. A binary semaphore is no point: Vulkan lets
 * nobody ask whether it is signalled. No queue waits for a fence (gm_stream_wait is NOT_SUPPORTED until it is
 * signalled). gm's own points have no native object without timeline semaphores (gm_point_native is NOT_SUPPORTED). */
typedef struct gm_vulkan_point {
  gm_native_point head; /* {sizeof(gm_vulkan_point), GM_API_VULKAN} */
  uint64_t semaphore;   /* VkSemaphore of type timeline, or 0 */
  uint64_t value;       /* of the semaphore */
  uint64_t fence;       /* VkFence, or 0; not reset before the point is released */
} gm_vulkan_point;

typedef struct gm_vulkan_memory {
  gm_native_memory head;  /* {sizeof(gm_vulkan_memory), GM_API_VULKAN} */
  uint32_t memory_type;   /* index into VkPhysicalDeviceMemoryProperties.memoryTypes */
  uint64_t memory;        /* VkDeviceMemory; 0: the buffer is sparse and may have many memories */
  uint64_t memory_offset; /* bytes from the start of `memory` to the block. A multiple of gm_request.align where the
                             device has no addresses, or placed the start of `memory` at such a multiple. Elsewhere
                             no offset is aligned together with the address, and the address is */
  uint64_t buffer;        /* VkBuffer that covers the block. In: an engine's own needs TRANSFER_SRC and TRANSFER_DST for
                             copies and fills; a fill with a long pattern copies within the buffer */
  uint64_t buffer_offset; /* bytes from the start of `buffer` to the block. A multiple of gm_request.align. Two cases
                             are no promise: memory that the driver wants made for one buffer; a sparse buffer with
                             smaller pages */
  uint64_t bytes;         /* of the block; other blocks may lie in `buffer` and `memory`, too */
  uint64_t device_address; /* 0: not available */
  void *mapped;            /* host address of the block, good until it is freed. gm maps each VkDeviceMemory of its own
                              that the host can see, once and for life: nobody else may map it. NULL: the host cannot
                              see it, the buffer is sparse, or the driver refused to map it. In: the engine's own
                              mapping of the block, if it has one. In, with `memory` and `buffer` 0: host memory for
                              gm to import (GM_VULKAN_EXTERNAL_MEMORY_HOST), at a multiple of the device's alignment.
                              gm makes a buffer for it, and gm_free destroys that */
  uint64_t buffer_bytes;   /* out: of `buffer` as a whole. The block is alone in it where `buffer_offset` is 0 and
                              this equals `bytes`. 0: the buffer is the engine's, and gm does not know its size */
  uint64_t memory_bytes;   /* out: of `memory` as a whole; 0: the buffer is sparse, or the memory is the engine's,
                              and gm does not know its size */
} gm_vulkan_memory;

GM_END_DECLS

#endif
