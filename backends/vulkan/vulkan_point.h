/* Points, as far as a stream must know their kinds. */
#ifndef GM_BACKENDS_VULKAN_POINT_H
#define GM_BACKENDS_VULKAN_POINT_H

#include "backends/vulkan/vulkan_timeline.h"

/* How a queue waits for a point: it has passed, by its semaphore, by a barrier on the same queue, or not at all. */
typedef enum gm__vulkan_wait_by {
  GM__VULKAN_WAIT_PASSED,
  GM__VULKAN_WAIT_SEMAPHORE,
  GM__VULKAN_WAIT_BARRIER,
  GM__VULKAN_WAIT_NOT
} gm__vulkan_wait_by;
gm_status gm__vulkan_point_ways(gm__vulkan_device *device, const gm_backend_point *point, VkQueue queue,
                                gm__vulkan_wait_by *out, gm_error *err);

#endif
