/* A timeline of fences, for a device without timeline semaphores. Each submission has a fence, and a value that is one
 * more than the last. Fences are used again. */
#ifndef GM_BACKENDS_VULKAN_FENCE_H
#define GM_BACKENDS_VULKAN_FENCE_H

#include "backends/vulkan/vulkan_device.h"

typedef struct gm__vulkan_fence gm__vulkan_fence;

typedef struct gm__vulkan_fences {
  gm__mutex mutex;                   /* guards all that follows */
  gm__vulkan_fence *oldest, *newest; /* submitted, in the order of their values */
  gm__vulkan_fence *idle;            /* reached; nobody waits for them */
  uint64_t reached;                  /* the highest value that is known to be reached */
} gm__vulkan_fences;

void gm__vulkan_fences_init(gm__vulkan_fences *fences);

/* Take an unsignalled fence for a submission. Sent: the queue has accepted it, and `value` is its own. Drop: the queue
 * has not accepted it. `handle` is what to submit. */
gm_status gm__vulkan_fence_take(gm__vulkan_device *device, gm__vulkan_fences *fences, gm__vulkan_fence **out,
                                gm_error *err);
VkFence gm__vulkan_fence_handle(const gm__vulkan_fence *fence);
void gm__vulkan_fence_sent(gm__vulkan_fences *fences, gm__vulkan_fence *fence, uint64_t value);
void gm__vulkan_fence_drop(gm__vulkan_fences *fences, gm__vulkan_fence *fence);

/* Ask how far the fences are. The answer is VK_SUCCESS (reached), VK_NOT_READY, or a failure. */
VkResult gm__vulkan_fences_done(gm__vulkan_device *device, gm__vulkan_fences *fences, uint64_t value);

/* Wait on the host for a value that was sent. VK_TIMEOUT. */
VkResult gm__vulkan_fences_wait(gm__vulkan_device *device, gm__vulkan_fences *fences, uint64_t value,
                                uint64_t timeout_ns);

/* Clear destroys the fences. Forget releases the records, and takes no lock. */
void gm__vulkan_fences_clear(gm__vulkan_device *device, gm__vulkan_fences *fences);
void gm__vulkan_fences_forget(const gm__vulkan_device *device, gm__vulkan_fences *fences);

#endif
