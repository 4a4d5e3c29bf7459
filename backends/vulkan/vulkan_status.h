/* Statuses for VkResult numbers. Thread-safe. */
#ifndef GM_BACKENDS_VULKAN_STATUS_H
#define GM_BACKENDS_VULKAN_STATUS_H

#include "backends/vulkan/vulkan_syms.h"

/* Fill `err` with the driver's answer to `op`, and return its status. VK_SUCCESS means that the driver gave no object:
 * GM_ERR_DRIVER. */
gm_status gm__vulkan_fail(VkResult result, const char *op, gm_error *err);

#endif
