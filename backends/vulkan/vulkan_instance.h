/* The driver: the loader library, gm's own VkInstance, its physical devices, and validation on request. For a device
 * that an engine lent with its entries, the driver has none of these. */
#ifndef GM_BACKENDS_VULKAN_INSTANCE_H
#define GM_BACKENDS_VULKAN_INSTANCE_H

#include "backends/vulkan/vulkan_physical.h"

/* Thread-safe: after init only the counters change. */
typedef struct gm__vulkan_driver {
  const gm_backend_host *host;
  const gm_services *services;
  gm__dynlib *lib;
  gm__vulkan_syms syms; /* library, global and instance level */
  VkInstance instance;
  VkDebugUtilsMessengerEXT messenger;
  atomic_uint messages; /* of the validation layers */
  bool validation;      /* option: use Khronos' layer with synchronisation validation */
  bool no_host_visible; /* option: present device memory as not host-visible */
  uint32_t physical_count;
  gm__vulkan_physical *physicals;
  gm__vulkan_heaps *heaps; /* one for each physical device */
} gm__vulkan_driver;

/* A driver without library and instance, for one device of an engine. gm__vulkan_fini ends it. INVALID_ARGUMENT: the
 * options are wrong. */
gm_status gm__vulkan_driver_alone(const gm_backend_host *host, gm__vulkan_driver **out, gm_error *err);

/* The number of warnings and errors that the validation layers have reported to gm's own instance so far. */
uint32_t gm__vulkan_validation_messages(const void *driver);

#endif
