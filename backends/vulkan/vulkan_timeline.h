/* Timelines, and points as their values: {semaphore, value}. On a device without timeline semaphores fences play the
 * timeline, and its address stands for the semaphore. A point that the engine made of a fence is {fence, 0}. */
#ifndef GM_BACKENDS_VULKAN_TIMELINE_H
#define GM_BACKENDS_VULKAN_TIMELINE_H

#include "backends/vulkan/vulkan_device.h"
#include "backends/vulkan/vulkan_fence.h"

/* A timeline lives as long as its device and serves one stream after the other. */
struct gm__vulkan_timeline {
  gm__vulkan_timeline *next;
  VkSemaphore handle; /* none: `fences` play it */
  gm__vulkan_fences fences;
  VkQueue queue; /* of the stream that has the timeline */
  uint64_t last; /* the value that the last submission will set; guarded by the stream lock */
  bool taken;    /* by a stream; guarded by the device lock */
};

/* Take a timeline that no stream has. Put gives it back; NULL does nothing. */
gm_status gm__vulkan_timeline_take(gm__vulkan_device *device, VkQueue queue, gm__vulkan_timeline **out, gm_error *err);
void gm__vulkan_timeline_put(gm__vulkan_device *device, gm__vulkan_timeline *timeline);

/* True when the device has timeline semaphores, and the engine enabled them. */
static inline bool gm__vulkan_has_timelines(const gm__vulkan_device *device) {
  return (device->features & GM_VULKAN_TIMELINE_SEMAPHORE) != 0;
}

/* The point at which the timeline has counted to `value`. 0: it has passed. */
gm_backend_point gm__vulkan_timeline_point(const gm__vulkan_timeline *timeline, uint64_t value);

/* For every timeline of the device: clear destroys the semaphore or fences, forget releases the records. */
void gm__vulkan_timelines_clear(gm__vulkan_device *device);
void gm__vulkan_timelines_forget(gm__vulkan_device *device);

#endif
