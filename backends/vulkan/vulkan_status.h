/* VkResult -> gm_status, by number. Thread-safe. */
#ifndef GM_BACKENDS_VULKAN_STATUS_H
#define GM_BACKENDS_VULKAN_STATUS_H

#include "backends/vulkan/vulkan_syms.h"

/* GM_ERR_DRIVER for a number that is not known. */
gm_status gm__vulkan_status(VkResult result);

/* "VK_ERROR_DEVICE_LOST"; "VkResult ?" for a number that is not known. Static storage. */
const char *gm__vulkan_result_name(VkResult result);

/* Fill `err` with the driver's answer to `op` and return its status. VK_SUCCESS: it gave no object, which is
 * GM_ERR_DRIVER. */
gm_status gm__vulkan_fail(VkResult result, const char *op, gm_error *err);

#endif
