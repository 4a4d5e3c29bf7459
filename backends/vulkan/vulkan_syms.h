/* The driver's entries. gm looks them up at run time: one table for the driver, one for each device. It uses Vulkan's
 * headers and links no library. */
#ifndef GM_BACKENDS_VULKAN_SYMS_H
#define GM_BACKENDS_VULKAN_SYMS_H

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan.h>

#include "core/base/dynlib.h"
#include "gm/backend.h"

typedef struct gm__vulkan_syms {
  void *simulated; /* only the simulated drivers of gm's tests have this entry; never called */
#define X(level, need, fault, name, result, params, args) PFN_##name name;
#include "backends/vulkan/vulkan_syms.def"
} gm__vulkan_syms;

/* Each function fills one level of the table, through the host's symbol hook. UNAVAILABLE names a missing entry.
 * REQUIRES: the levels before it are filled. `engine` fills the library level with the engine's own
 * vkGetInstanceProcAddr. */
gm_status gm__vulkan_syms_library(gm__vulkan_syms *syms, const gm__dynlib *lib, const gm_backend_host *host,
                                  gm_error *err);
gm_status gm__vulkan_syms_engine(gm__vulkan_syms *syms, PFN_vkGetInstanceProcAddr entry, const gm_backend_host *host,
                                 gm_error *err);
gm_status gm__vulkan_syms_global(gm__vulkan_syms *syms, const gm_backend_host *host, gm_error *err);
gm_status gm__vulkan_syms_instance(gm__vulkan_syms *syms, VkInstance instance, const gm_backend_host *host,
                                   gm_error *err);
gm_status gm__vulkan_syms_device(gm__vulkan_syms *syms, VkDevice device, const gm_backend_host *host, gm_error *err);

#endif
