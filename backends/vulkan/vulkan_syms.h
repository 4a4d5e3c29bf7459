/* The driver's entries, looked up at run time: one table per driver, one per device. Vulkan's headers, no library. */
#ifndef GM_BACKENDS_VULKAN_SYMS_H
#define GM_BACKENDS_VULKAN_SYMS_H

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan.h>

#include "core/base/dynlib.h"
#include "gm/backend.h"

typedef struct gm__vulkan_syms {
  void *simulated; /* an entry that only the simulated drivers of gm's tests have; never called */
#define X(level, need, fault, name, result, params, args) PFN_##name name;
#include "backends/vulkan/vulkan_syms.def"
} gm__vulkan_syms;

/* Each fills one level of the table, through the host's symbol hook; UNAVAILABLE names what is missing. Levels below
 * must be there. The library level of an adopted device is the engine's own vkGetInstanceProcAddr. */
gm_status gm__vulkan_syms_library(gm__vulkan_syms *syms, const gm__dynlib *lib, const gm_backend_host *host,
                                  gm_error *err);
gm_status gm__vulkan_syms_engine(gm__vulkan_syms *syms, PFN_vkGetInstanceProcAddr entry, const gm_backend_host *host,
                                 gm_error *err);
gm_status gm__vulkan_syms_global(gm__vulkan_syms *syms, const gm_backend_host *host, gm_error *err);
gm_status gm__vulkan_syms_instance(gm__vulkan_syms *syms, VkInstance instance, const gm_backend_host *host,
                                   gm_error *err);
gm_status gm__vulkan_syms_device(gm__vulkan_syms *syms, VkDevice device, const gm_backend_host *host, gm_error *err);

#endif
