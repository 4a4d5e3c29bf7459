/* The properties of a VkPhysicalDevice. gm reads them once, checks them and keeps them as plain data. */
#ifndef GM_BACKENDS_VULKAN_PHYSICAL_H
#define GM_BACKENDS_VULKAN_PHYSICAL_H

#include <stdatomic.h>

#include "backends/vulkan/vulkan_syms.h"

#define VULKAN_NO_FAMILY UINT32_MAX

enum { VULKAN_SHARE_KINDS = GM_SHARE_DMABUF + 1 };

/* The driver's abilities for one way of sharing the memory of buffers. */
typedef struct gm__vulkan_sharing {
  bool exports, imports;
  bool dedicated; /* only an allocation for one buffer can be shared */
} gm__vulkan_sharing;

typedef struct gm__vulkan_physical {
  VkPhysicalDevice handle;
  uint32_t version;    /* the smaller one of the device's and the instance's version */
  bool timeline;       /* has timeline semaphores */
  bool timeline_ext;   /* by VK_KHR_timeline_semaphore, not by version */
  bool budget;         /* VK_EXT_memory_budget */
  bool address;        /* has buffer device addresses */
  bool address_ext;    /* by VK_KHR_buffer_device_address, not by version */
  bool fd;             /* VK_KHR_external_memory_fd */
  bool dmabuf;         /* VK_EXT_external_memory_dma_buf */
  uint64_t host_align; /* VK_EXT_external_memory_host: its unit of host memory, a power of two; 0: not there */
  bool priority;       /* VK_EXT_memory_priority, with its feature */
  bool sparse;         /* has sparse buffers with unbound parts, and a queue family that binds them */
  bool has_luid;
  uint32_t family; /* the first queue family for compute and transfer, or VULKAN_NO_FAMILY */
  uint32_t family_count;
  uint32_t compute_families; /* one bit for each family that runs shaders */
  uint32_t sparse_families;  /* one bit for each family that binds sparse memory */
  uint32_t sparse_family;    /* `family` if it binds, else the first family that does, or VULKAN_NO_FAMILY */
  VkPhysicalDeviceProperties props;
  VkPhysicalDeviceMemoryProperties memory;
  uint8_t uuid[VK_UUID_SIZE];
  uint8_t driver_uuid[VK_UUID_SIZE];
  uint8_t luid[VK_LUID_SIZE];
  VkDriverId driver;
  char driver_info[VK_MAX_DRIVER_INFO_SIZE];
  uint64_t max_memory_bytes;                      /* maxMemoryAllocationSize */
  uint64_t max_buffer_bytes;                      /* maxBufferSize; UINT64_MAX where the version has none */
  gm__vulkan_sharing sharing[VULKAN_SHARE_KINDS]; /* of GM_SHARE_FD and GM_SHARE_DMABUF */
  char pci[24];                                   /* "" if the driver does not tell */
} gm__vulkan_physical;

/* Vulkan's name for a way of sharing; 0: none. */
VkExternalMemoryHandleTypeFlagBits gm__vulkan_handle_type(gm_share_kind kind);

/* The usages of gm's buffers. */
VkBufferUsageFlags gm__vulkan_buffer_usage(bool address);

/* How buffers of that usage can be shared, or get memory from outside, in one way. REQUIRES: the extension for it. */
gm__vulkan_sharing gm__vulkan_ask_sharing(const gm__vulkan_syms *syms, const gm__vulkan_physical *physical,
                                          VkExternalMemoryHandleTypeFlagBits kind, VkBufferUsageFlags usage);

/* Bytes that gm holds in each heap of a physical device. Thread-safe. */
typedef struct gm__vulkan_heaps {
  _Atomic uint64_t held[VK_MAX_MEMORY_HEAPS];
} gm__vulkan_heaps;

/* `version` is that of the instance. OUT_OF_HOST_MEMORY, DRIVER. */
gm_status gm__vulkan_physical_read(const gm__vulkan_syms *syms, const gm_services *services, VkPhysicalDevice handle,
                                   uint32_t version, gm__vulkan_physical *out, gm_error *err);

/* GM_OK, or NOT_SUPPORTED with the reason why gm cannot use the device. `timelines`: it needs timeline semaphores. */
gm_status gm__vulkan_physical_usable(const gm__vulkan_physical *physical, bool timelines, gm_error *err);

/* Take counts `bytes` to a heap. False: the heap would hold more than `limit`, and nothing is counted. Give uncounts.
 */
bool gm__vulkan_heaps_take(gm__vulkan_heaps *heaps, uint32_t heap, uint64_t bytes, uint64_t limit);
void gm__vulkan_heaps_give(gm__vulkan_heaps *heaps, uint32_t heap, uint64_t bytes);

#endif
