/* A device: gm's own VkDevice with one queue, or the engine's. */
#ifndef GM_BACKENDS_VULKAN_DEVICE_H
#define GM_BACKENDS_VULKAN_DEVICE_H

#include "backends/vulkan/vulkan_buffer.h"
#include "backends/vulkan/vulkan_instance.h"
#include "backends/vulkan/vulkan_sparse.h"
#include "backends/vulkan/vulkan_staging.h"
#include "backends/vulkan/vulkan_types.h"
#include "core/base/thread.h"
#include "gm/native_vulkan.h"

enum { VULKAN_MAX_FAMILIES = 8 };

typedef struct gm__vulkan_command_pool gm__vulkan_command_pool;
typedef struct gm__vulkan_queue gm__vulkan_queue;
typedef struct gm__vulkan_timeline gm__vulkan_timeline;

/* A way in which memory of the device can be shared. */
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
  uint32_t features; /* gm_vulkan_feature */
  uint32_t families[VULKAN_MAX_FAMILIES];
  uint32_t family_count;
  bool address; /* buffers have device addresses */
  gm__vulkan_shares shares[VULKAN_SHARE_KINDS];
  uint64_t alignment; /* of blocks and views */
  gm__vulkan_type types[VULKAN_MAX_TYPES];
  uint32_t type_count;
  atomic_bool lost;
  _Atomic uint32_t live; /* VkDeviceMemory objects of gm */
  gm__mutex mutex;       /* the lists, and mapping */
  gm__vulkan_queue *queues;
  gm__vulkan_timeline *timelines;
  gm__vulkan_command_pool *pools;
  gm__vulkan_staging staging;
  gm__vulkan_sparse sparse;
};

/* The seam's entries of groups 4 and 5 that concern the device. */
gm_status gm__vulkan_device_open(void *driver, uint32_t index, void **out_device, gm_error *err);
gm_status gm__vulkan_device_adopt(void *driver, const gm_native_device *native, void **out_device, gm_error *err);
void gm__vulkan_device_close(void *device, gm_close_mode mode);
gm_status gm__vulkan_device_state(void *device, gm_error *err);
gm_status gm__vulkan_device_native(void *device, gm_native_device *out, gm_error *err);

/* As gm__vulkan_fail; a lost device is remembered. */
gm_status gm__vulkan_device_fail(gm__vulkan_device *device, VkResult result, const char *op, gm_error *err);
#ifdef __clang_analyzer__ /* as for gm__fail: it never returns GM_OK */
#define gm__vulkan_device_fail(...) ((void)gm__vulkan_device_fail(__VA_ARGS__), GM_ERR_DRIVER)
#endif

/* Made and undone in both ways of coming to a device (vulkan_device.c, vulkan_adopt.c). */
gm__vulkan_device *gm__vulkan_device_make(gm__vulkan_driver *driver, gm_error *err);
gm_status gm__vulkan_device_ready(gm__vulkan_device *device, gm_error *err);

#endif
