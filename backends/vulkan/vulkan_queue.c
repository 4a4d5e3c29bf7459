#include "backends/vulkan/vulkan_queue.h"

#include "core/base/alloc.h"
#include "core/base/error.h"

gm_status gm__vulkan_queue_handle(const gm__vulkan_device *device, uint32_t family, VkQueue *out, gm_error *err) {
  *out = VK_NULL_HANDLE;
  device->syms.vkGetDeviceQueue(device->handle, family, 0, out);
  if (*out) return GM_OK;
  return gm__fail(err, GM_ERR_DRIVER, "vkGetDeviceQueue", "the driver gave no queue of family %u", family);
}

/* REQUIRES: device lock. */
static gm__vulkan_queue *queue_make(gm__vulkan_device *device, VkQueue handle, uint32_t family) {
  gm__vulkan_queue *queue = gm__alloc(device->services, sizeof *queue);
  if (!queue) return NULL;
  queue->handle = handle;
  queue->family = family;
  gm__mutex_init(&queue->mutex, GM__RANK_QUEUE);
  queue->next = device->queues;
  device->queues = queue;
  return queue;
}

gm__vulkan_queue *gm__vulkan_queue_get(gm__vulkan_device *device, VkQueue handle, uint32_t family) {
  gm__mutex_lock(&device->mutex);
  gm__vulkan_queue *queue = device->queues;
  while (queue && queue->handle != handle) queue = queue->next;
  if (!queue) queue = queue_make(device, handle, family);
  if (queue) queue->users++;
  gm__mutex_unlock(&device->mutex);
  return queue;
}

/* REQUIRES: device lock. */
static void queue_unmake(gm__vulkan_device *device, gm__vulkan_queue *queue) {
  gm__vulkan_queue **at = &device->queues;
  while (*at != queue) at = &(*at)->next;
  *at = queue->next;
  gm__mutex_destroy(&queue->mutex);
  gm__release(device->services, queue, sizeof *queue);
}

void gm__vulkan_queue_put(gm__vulkan_device *device, gm__vulkan_queue *queue) {
  gm__mutex_lock(&device->mutex);
  if (--queue->users == 0) queue_unmake(device, queue);
  gm__mutex_unlock(&device->mutex);
}

void gm__vulkan_queues_forget(gm__vulkan_device *device) {
  while (device->queues) {
    gm__vulkan_queue *queue = device->queues;
    device->queues = queue->next;
    gm__release(device->services, queue, sizeof *queue);
  }
}

gm_status gm__vulkan_stream_may_submit(const gm__vulkan_stream *stream, const char *op, gm_error *err) {
  if (stream->timeline) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, op,
                  "the engine lent this queue without leave to submit (may_submit false): do it in the engine's own "
                  "command buffers");
}

void gm__vulkan_stream_lock(gm__vulkan_stream *stream) {
  if (stream->lock) {
    gm__rank_check_submit(); /* the engine may wait here, or call gm */
    stream->lock(stream->user);
  } else {
    gm__mutex_lock(&stream->queue->mutex);
  }
}

void gm__vulkan_stream_unlock(gm__vulkan_stream *stream) {
  if (stream->lock) {
    gm__rank_check_submit();
    stream->unlock(stream->user);
  } else {
    gm__mutex_unlock(&stream->queue->mutex);
  }
}

/* REQUIRES: queue lock, stream lock. */
static VkResult stream_submit_value(const gm__vulkan_stream *stream, VkCommandBuffer commands,
                                    const gm_backend_point *wait, uint64_t value) {
  VkSemaphore waited = wait ? (VkSemaphore)wait->handle : VK_NULL_HANDLE;
  const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
  const VkTimelineSemaphoreSubmitInfo values = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                                .waitSemaphoreValueCount = wait ? 1 : 0,
                                                .pWaitSemaphoreValues = wait ? &wait->value : NULL,
                                                .signalSemaphoreValueCount = 1,
                                                .pSignalSemaphoreValues = &value};
  const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                             .pNext = &values,
                             .waitSemaphoreCount = wait ? 1 : 0,
                             .pWaitSemaphores = &waited,
                             .pWaitDstStageMask = &stage,
                             .commandBufferCount = commands ? 1 : 0,
                             .pCommandBuffers = &commands,
                             .signalSemaphoreCount = 1,
                             .pSignalSemaphores = &stream->timeline->handle};
  return stream->device->syms.vkQueueSubmit(stream->queue->handle, 1, &info, VK_NULL_HANDLE);
}

/* An empty submission with a fence tells of all work before it on the queue. REQUIRES: queue lock, stream lock. */
static VkResult stream_submit_fence(const gm__vulkan_stream *stream, VkCommandBuffer commands, gm__vulkan_fence *fence,
                                    uint64_t value) {
  const VkSubmitInfo info = {
      .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands};
  const VkResult result = stream->device->syms.vkQueueSubmit(stream->queue->handle, commands ? 1 : 0,
                                                             commands ? &info : NULL, gm__vulkan_fence_handle(fence));
  if (!result) gm__vulkan_fence_sent(&stream->timeline->fences, fence, value);
  return result;
}

/* `fence` NULL: the timeline has a semaphore. */
static VkResult stream_submit_next(gm__vulkan_stream *stream, VkCommandBuffer commands, const gm_backend_point *wait,
                                   gm__vulkan_fence *fence, gm_backend_point *out) {
  gm__vulkan_timeline *timeline = stream->timeline;
  gm__vulkan_stream_lock(stream); /* before the stream lock: an engine's hook may wait, and may call gm */
  gm__mutex_lock(&stream->mutex);
  const uint64_t value = timeline->last + 1;
  const VkResult result =
      fence ? stream_submit_fence(stream, commands, fence, value) : stream_submit_value(stream, commands, wait, value);
  if (!result) timeline->last = value;
  if (!result && wait) stream->waited = true;
  gm__mutex_unlock(&stream->mutex);
  gm__vulkan_stream_unlock(stream);
  if (!result && out) *out = gm__vulkan_timeline_point(timeline, value);
  return result;
}

gm_status gm__vulkan_stream_submit(gm__vulkan_stream *stream, VkCommandBuffer commands, const gm_backend_point *wait,
                                   gm_backend_point *out, gm_error *err) {
  gm__vulkan_fences *fences = &stream->timeline->fences;
  gm__vulkan_fence *fence = NULL;
  const bool counted = !gm__vulkan_has_timelines(stream->device);
  const gm_status status = counted ? gm__vulkan_fence_take(stream->device, fences, &fence, err) : GM_OK;
  if (status) return status;
  const VkResult result = stream_submit_next(stream, commands, wait, fence, out);
  if (!result) return GM_OK;
  if (fence) gm__vulkan_fence_drop(fences, fence);
  return gm__vulkan_device_fail(stream->device, result, "vkQueueSubmit", err);
}
