/* The record of a device: gm's own VkDevice with one queue, or the engine's. */
#ifndef GM_BACKENDS_VULKAN_DEVICE_H
#define GM_BACKENDS_VULKAN_DEVICE_H

#include "backends/vulkan/vulkan_buffer.h"
#include "backends/vulkan/vulkan_instance.h"
#include "backends/vulkan/vulkan_kernel.h"
#include "backends/vulkan/vulkan_sparse.h"
#include "backends/vulkan/vulkan_staging.h"
#include "backends/vulkan/vulkan_types.h"
#include "gm/native_vulkan.h"

enum {
  VULKAN_CAPABILITIES = GM_CAP_STREAMS | GM_CAP_POINTS | GM_CAP_MAPPING | GM_CAP_ADOPT | GM_CAP_COMMIT | GM_CAP_VIEW |
                        GM_CAP_ADDRESS | GM_CAP_SHARE | GM_CAP_VMM | GM_CAP_REGISTRATION,
  VULKAN_MAX_FAMILIES = 8
};

typedef struct gm__vulkan_command_pool gm__vulkan_command_pool;
typedef struct gm__vulkan_queue gm__vulkan_queue;
typedef struct gm__vulkan_timeline gm__vulkan_timeline;
typedef struct gm__vulkan_host_range gm__vulkan_host_range;

/* One way in which the device can share memory. */
typedef struct gm__vulkan_shares {
  gm__vulkan_sharing can;
  uint32_t type_bits; /* VkMemoryTypes that can lie behind such a buffer */
} gm__vulkan_shares;

struct gm__vulkan_device {
  gm__vulkan_driver *driver;
  const gm_services *services;
  gm__vulkan_syms syms;
  gm__vulkan_physical physical;
  gm__vulkan_heaps *heaps; /* the driver's, or own_heaps for a card that the driver does not list */
  gm__vulkan_heaps own_heaps;
  VkInstance instance;
  VkDevice handle;
  bool adopted;
  uint32_t features;        /* gm_vulkan_feature */
  VkBufferUsageFlags usage; /* of buffers, beside gm__vulkan_buffer_usage */
  uint32_t families[VULKAN_MAX_FAMILIES];
  uint32_t family_count;
  bool concurrent; /* buffers belong to all families at once */
  bool alone;      /* `driver` is this device's own */
  bool address;    /* buffers have device addresses */
  gm__vulkan_shares shares[VULKAN_SHARE_KINDS];
  uint64_t alignment; /* of blocks and views */
  gm__vulkan_type types[VULKAN_MAX_TYPES];
  uint32_t type_count;
  atomic_bool lost;
  _Atomic uint32_t live; /* VkDeviceMemory objects of gm */
  gm__mutex mutex;       /* the device lock: it guards the lists below, and mapping */
  gm__vulkan_queue *queues;
  gm__vulkan_timeline *timelines;
  gm__vulkan_command_pool *pools;
  uint32_t host_types; /* VkMemoryTypes that the caller's host memory can have; 0: the device cannot use it */
  gm__vulkan_host_range *host_ranges; /* REQUIRES: device lock */
  _Atomic uint32_t host_range_count;
  gm__vulkan_staging staging;
  gm__vulkan_memory *_Atomic table; /* of vulkan_table.h; NULL until first needed */
  gm__vulkan_kernels kernels;
  gm__vulkan_sparse sparse;
};

/* Fill `err` as gm__vulkan_fail does. VK_ERROR_DEVICE_LOST marks the device as lost. */
gm_status gm__vulkan_device_fail(gm__vulkan_device *device, VkResult result, const char *op, gm_error *err);
#ifdef __clang_analyzer__ /* as for gm__fail: it never returns GM_OK */
#define gm__vulkan_device_fail(...) ((void)gm__vulkan_device_fail(__VA_ARGS__), GM_ERR_DRIVER)
#endif

#endif
