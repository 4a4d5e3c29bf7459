/* What gm's core asks about a device: words, limits, figures. */
#ifndef GM_BACKENDS_VULKAN_INFO_H
#define GM_BACKENDS_VULKAN_INFO_H

#include "backends/vulkan/vulkan_device.h"

enum {
  VULKAN_CAPABILITIES = GM_CAP_STREAMS | GM_CAP_POINTS | GM_CAP_MAPPING | GM_CAP_ADOPT | GM_CAP_COMMIT | GM_CAP_VIEW |
                        GM_CAP_ADDRESS | GM_CAP_SHARE | GM_CAP_VMM
};

/* The seam's entries of groups 3 and 6. */
gm_status gm__vulkan_device_count(void *driver, uint32_t *out, gm_error *err);
gm_status gm__vulkan_device_info(void *driver, uint32_t index, void *device, gm_device_info *out, gm_error *err);
gm_status gm__vulkan_figures(void *driver, uint32_t index, void *device, gm_raw_figures *out, gm_error *err);

/* "nvidia", "radv", …: the words of memory-view cases; "other" for a driver without one. Static storage. */
const char *gm__vulkan_driver_word(VkDriverId id);

#endif
