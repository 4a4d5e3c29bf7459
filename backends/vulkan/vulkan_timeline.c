#include "backends/vulkan/vulkan_timeline.h"

#include "backends/vulkan/vulkan_entries.h"
#include "core/base/alloc.h"
#include "core/base/error.h"

/* Invariants: only a submission that the queue has accepted sets `last`, so every point is reached unless the device is
 * lost. Values only rise, also from one stream of a timeline to the next. */

static gm_status timeline_semaphore(gm__vulkan_device *device, VkSemaphore *out, gm_error *err) {
  const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                          .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
  const VkResult result = device->syms.vkCreateSemaphore(device->handle, &info, NULL, out);
  return result || !*out ? gm__vulkan_device_fail(device, result, "vkCreateSemaphore", err) : GM_OK;
}

/* REQUIRES: device lock. */
static gm_status timeline_create(gm__vulkan_device *device, gm__vulkan_timeline **out, gm_error *err) {
  gm__vulkan_timeline *timeline = gm__alloc(device->services, sizeof *timeline);
  if (!timeline) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_backend_ops.stream_create", "no host memory for a timeline");
  }
  const gm_status status =
      gm__vulkan_has_timelines(device) ? timeline_semaphore(device, &timeline->handle, err) : GM_OK;
  if (status) {
    gm__release(device->services, timeline, sizeof *timeline);
    return status;
  }
  gm__vulkan_fences_init(&timeline->fences);
  timeline->next = device->timelines;
  device->timelines = timeline;
  *out = timeline;
  return GM_OK;
}

gm_status gm__vulkan_timeline_take(gm__vulkan_device *device, VkQueue queue, gm__vulkan_timeline **out, gm_error *err) {
  gm__mutex_lock(&device->mutex);
  gm__vulkan_timeline *timeline = device->timelines;
  while (timeline && timeline->taken) timeline = timeline->next;
  gm_status status = timeline ? GM_OK : timeline_create(device, &timeline, err);
  if (!status) {
    timeline->taken = true;
    timeline->queue = queue;
    *out = timeline;
  }
  gm__mutex_unlock(&device->mutex);
  return status;
}

void gm__vulkan_timeline_put(gm__vulkan_device *device, gm__vulkan_timeline *timeline) {
  gm__mutex_lock(&device->mutex);
  if (timeline) timeline->taken = false;
  gm__mutex_unlock(&device->mutex);
}

gm_backend_point gm__vulkan_timeline_point(const gm__vulkan_timeline *timeline, uint64_t value) {
  if (!value) return (gm_backend_point){0, 0};
  return (gm_backend_point){timeline->handle ? (uint64_t)timeline->handle : (uint64_t)(uintptr_t)timeline, value};
}

void gm__vulkan_timelines_clear(gm__vulkan_device *device) {
  for (gm__vulkan_timeline *timeline = device->timelines; timeline; timeline = timeline->next) {
    if (timeline->handle) device->syms.vkDestroySemaphore(device->handle, timeline->handle, NULL);
    gm__vulkan_fences_clear(device, &timeline->fences);
  }
}

void gm__vulkan_timelines_forget(gm__vulkan_device *device) {
  while (device->timelines) {
    gm__vulkan_timeline *timeline = device->timelines;
    device->timelines = timeline->next;
    gm__vulkan_fences_forget(device, &timeline->fences);
    gm__release(device->services, timeline, sizeof *timeline);
  }
}
