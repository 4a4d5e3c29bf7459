/* The driver: loader library, gm's own VkInstance, its physical devices, validation on request. */
#ifndef GM_BACKENDS_VULKAN_INSTANCE_H
#define GM_BACKENDS_VULKAN_INSTANCE_H

#include "backends/vulkan/vulkan_physical.h"

/* Immutable after init but for its counters, so thread-safe. */
typedef struct gm__vulkan_driver {
  const gm_backend_host *host;
  const gm_services *services;
  gm__dynlib *lib;
  gm__vulkan_syms syms; /* library, global and instance level */
  VkInstance instance;
  VkDebugUtilsMessengerEXT messenger;
  atomic_uint messages; /* of the validation layers */
  bool validation;      /* option: Khronos' layer with synchronisation validation */
  bool no_host_visible; /* option: device memory is presented as not host-visible */
  uint32_t physical_count;
  gm__vulkan_physical *physicals;
  gm__vulkan_heaps *heaps; /* one for each of them */
} gm__vulkan_driver;

/* The seam's entries of group 2. Options: `validation`, `no_host_visible`; another word is INVALID_ARGUMENT. */
gm_status gm__vulkan_probe(const gm_backend_host *host, gm_probe_level level, gm_driver_info *out, gm_error *err);
gm_status gm__vulkan_init(const gm_backend_host *host, void **out_driver, gm_error *err);
void gm__vulkan_fini(void *driver, gm_close_mode mode);

/* What the validation layers said so far to gm's own instance: warnings and errors; 0 without the option. */
uint32_t gm__vulkan_validation_messages(const void *driver);

#endif
