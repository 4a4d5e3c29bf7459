#include "backends/vulkan/vulkan_stream.h"

#include "backends/vulkan/vulkan_command.h"
#include "backends/vulkan/vulkan_status.h"
#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/native.h"
#include "core/base/sized.h"

/* Invariants: a timeline's value `last` is set by a submission that the queue has accepted, so every point of a stream
 * is reached unless the device is lost; values only rise, also from one stream of a timeline to the next. */

static gm_status stream_no_memory(gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_backend_ops.stream_create", "no host memory for a stream");
}

/* Queues: the record for a handle is shared by its streams. Both under the device's mutex. */
static gm__vulkan_queue *queue_get(gm__vulkan_device *device, VkQueue handle, uint32_t family) {
  gm__vulkan_queue *queue = device->queues;
  while (queue && queue->handle != handle) queue = queue->next;
  if (!queue) {
    queue = gm__alloc(device->services, sizeof *queue);
    if (!queue) return NULL;
    queue->handle = handle;
    queue->family = family;
    gm__mutex_init(&queue->mutex, GM__RANK_QUEUE);
    queue->next = device->queues;
    device->queues = queue;
  }
  queue->users++;
  return queue;
}

static void queue_put(gm__vulkan_device *device, gm__vulkan_queue *queue) {
  if (!queue || --queue->users) return;
  gm__vulkan_queue **at = &device->queues;
  while (*at != queue) at = &(*at)->next;
  *at = queue->next;
  gm__mutex_destroy(&queue->mutex);
  gm__release(device->services, queue, sizeof *queue);
}

gm__vulkan_queue *gm__vulkan_queue_get(gm__vulkan_device *device, VkQueue handle, uint32_t family) {
  gm__mutex_lock(&device->mutex);
  gm__vulkan_queue *queue = queue_get(device, handle, family);
  gm__mutex_unlock(&device->mutex);
  return queue;
}

void gm__vulkan_queue_put(gm__vulkan_device *device, gm__vulkan_queue *queue) {
  gm__mutex_lock(&device->mutex);
  queue_put(device, queue);
  gm__mutex_unlock(&device->mutex);
}

static gm_status timeline_create(gm__vulkan_device *device, gm__vulkan_timeline **out, gm_error *err) {
  gm__vulkan_timeline *timeline = gm__alloc(device->services, sizeof *timeline);
  if (!timeline) return stream_no_memory(err);
  const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                          .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
  VkResult result = device->syms.vkCreateSemaphore(device->handle, &info, NULL, &timeline->handle);
  if (result || !timeline->handle) {
    gm__release(device->services, timeline, sizeof *timeline);
    return gm__vulkan_device_fail(device, result, "vkCreateSemaphore", err);
  }
  timeline->next = device->timelines;
  device->timelines = timeline;
  *out = timeline;
  return GM_OK;
}

/* Under the device's mutex. */
static gm_status timeline_take(gm__vulkan_device *device, gm__vulkan_timeline **out, gm_error *err) {
  gm__vulkan_timeline *timeline = device->timelines;
  while (timeline && timeline->taken) timeline = timeline->next;
  gm_status status = timeline ? GM_OK : timeline_create(device, &timeline, err);
  if (status) return status;
  timeline->taken = true;
  *out = timeline;
  return GM_OK;
}

static gm_status stream_attach(gm__vulkan_stream *stream, VkQueue handle, uint32_t family, bool may_submit,
                               gm_error *err) {
  gm__vulkan_device *device = stream->device;
  gm__mutex_lock(&device->mutex);
  gm_status status = may_submit ? timeline_take(device, &stream->timeline, err) : GM_OK;
  if (!status) {
    stream->queue = queue_get(device, handle, family);
    if (!stream->queue) status = stream_no_memory(err);
  }
  if (status && stream->timeline) stream->timeline->taken = false;
  gm__mutex_unlock(&device->mutex);
  return status;
}

static gm_status stream_make(gm__vulkan_device *device, VkQueue handle, uint32_t family, bool may_submit,
                             gm__vulkan_stream **out, gm_error *err) {
  gm_status status = gm__vulkan_device_state(device, err);
  if (status) return status;
  gm__vulkan_stream *stream = gm__alloc(device->services, sizeof *stream);
  if (!stream) return stream_no_memory(err);
  stream->device = device;
  status = stream_attach(stream, handle, family, may_submit, err);
  if (status) {
    gm__release(device->services, stream, sizeof *stream);
    return status;
  }
  gm__mutex_init(&stream->mutex, GM__RANK_STREAM);
  *out = stream;
  return GM_OK;
}

gm_status gm__vulkan_stream_create(void *user, void **out_stream, gm_stream_kind *out_kind, gm_error *err) {
  gm__vulkan_device *device = user;
  if (device->adopted) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "gm_backend_ops.stream_create",
                    "gm makes no queue on an engine's device: adopt one of its queues (gm_stream_adopt)");
  }
  VkQueue handle = VK_NULL_HANDLE;
  device->syms.vkGetDeviceQueue(device->handle, device->families[0], 0, &handle);
  if (!handle) {
    return gm__fail(err, GM_ERR_DRIVER, 0, "vkGetDeviceQueue", "the driver gave no queue of family %u",
                    device->families[0]);
  }
  gm__vulkan_stream *stream;
  gm_status status = stream_make(device, handle, device->families[0], true, &stream, err);
  if (status) return status;
  *out_stream = stream;
  *out_kind = GM_STREAM_FIFO_IF_BARRIER;
  return GM_OK;
}

static gm_status stream_check_native(const gm__vulkan_device *device, const gm_native_stream *given,
                                     gm_vulkan_queue *native, gm_error *err) {
  static const char op[] = "gm_backend_ops.stream_adopt";
  const gm_status status = gm__native_in(native, sizeof *native, given, GM_API_VULKAN, op, "native", err);
  if (status) return status;
  if (!native->queue) return gm__bad_argument(err, op, "`native`: queue is 0");
  if (!native->lock != !native->unlock) {
    return gm__bad_argument(err, op, "`native` has %s but no %s: give both or neither",
                            native->lock ? "lock" : "unlock", native->lock ? "unlock" : "lock");
  }
  for (uint32_t i = 0; i < device->family_count; i++) {
    if (device->families[i] == native->family) return GM_OK;
  }
  return gm__bad_argument(err, op, "`native`: family %u is not among the queue families the device was %s with",
                          native->family, device->adopted ? "adopted" : "opened");
}

gm_status gm__vulkan_stream_adopt(void *user, const gm_native_stream *given, void **out_stream,
                                  gm_stream_kind *out_kind, gm_error *err) {
  gm__vulkan_device *device = user;
  gm_vulkan_queue native;
  gm_status status = stream_check_native(device, given, &native, err);
  if (status) return status;
  gm__vulkan_stream *stream;
  status = stream_make(device, (VkQueue)native.queue, native.family, native.may_submit, &stream, err);
  if (status) return status;
  stream->adopted = true;
  stream->lock = native.lock;
  stream->unlock = native.unlock;
  stream->user = native.user;
  gm__vulkan_sparse_offer(stream);
  *out_stream = stream;
  *out_kind = GM_STREAM_FIFO_IF_BARRIER;
  return GM_OK;
}

/* What of the terms differs; NULL: nothing. */
static const char *stream_other_terms(const gm__vulkan_stream *stream, const gm_vulkan_queue *native) {
  if (stream->queue->family != native->family) return "family";
  if (!stream->timeline == native->may_submit) return "may_submit";
  if (stream->lock != native->lock) return "lock";
  if (stream->unlock != native->unlock) return "unlock";
  return stream->user == native->user ? NULL : "user";
}

gm_status gm__vulkan_stream_same(void *device, void *user, const gm_native_stream *given, bool *out, gm_error *err) {
  const gm__vulkan_stream *stream = user;
  gm_vulkan_queue native;
  const gm_status status = stream_check_native(device, given, &native, err);
  if (status) return status;
  const bool same = stream->queue->handle == (VkQueue)native.queue;
  const char *other = same ? stream_other_terms(stream, &native) : NULL;
  if (other) {
    return gm__bad_argument(err, "gm_backend_ops.stream_adopt",
                            "`native`: the queue is adopted already, with another `%s`: lend it on the same terms, or "
                            "share the stream that there is",
                            other);
  }
  *out = same;
  return GM_OK;
}

static gm_status point_await(gm__vulkan_device *device, VkSemaphore semaphore, uint64_t value, uint64_t timeout_ns,
                             gm_error *err) {
  const VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                    .semaphoreCount = 1,
                                    .pSemaphores = &semaphore,
                                    .pValues = &value};
  VkResult result = device->syms.vkWaitSemaphores(device->handle, &info, timeout_ns);
  if (result != VK_SUCCESS && timeout_ns == UINT64_MAX) {
    /* The work still runs, in memory that the caller may give back on this answer: wait for it all the same. That ends
     * on a lost device, too. A time-out that nobody asked for is no failure when the second wait succeeds. */
    const VkResult again = device->syms.vkWaitSemaphores(device->handle, &info, timeout_ns);
    if (result > 0) result = again;
  }
  if (result == VK_TIMEOUT) {
    return gm__fail(err, GM_ERR_TIMEOUT, result, "vkWaitSemaphores", "the point was not reached in time");
  }
  return result ? gm__vulkan_device_fail(device, result, "vkWaitSemaphores", err) : GM_OK;
}

static gm_status stream_await_last(gm__vulkan_stream *stream, gm_error *err) {
  gm__mutex_lock(&stream->mutex);
  uint64_t last = stream->timeline->last;
  gm__mutex_unlock(&stream->mutex);
  return last ? point_await(stream->device, stream->timeline->handle, last, UINT64_MAX, err) : GM_OK;
}

/* Everything submitted has ended. Mesa's drivers let go of a semaphore that a submission waited for only after they
 * have signalled its end, on a thread of the queue, and the semaphore may be destroyed by then. What that thread does
 * for an empty submission behind it comes later. */
static void stream_end(gm__vulkan_stream *stream) {
  if (stream->waited) gm__vulkan_stream_submit(stream, VK_NULL_HANDLE, NULL, NULL, NULL);
  stream_await_last(stream, NULL);
}

void gm__vulkan_stream_close(void *user, void *closing, gm_close_mode mode) {
  gm__vulkan_device *device = user;
  gm__vulkan_stream *stream = closing;
  if (!stream) return;
  if (mode == GM_CLOSE_NORMAL) {
    gm__vulkan_sparse_withdraw(stream);
    if (stream->timeline) stream_end(stream);
    gm__mutex_lock(&device->mutex);
    if (stream->timeline) stream->timeline->taken = false;
    queue_put(device, stream->queue);
    gm__mutex_unlock(&device->mutex);
    gm__mutex_destroy(&stream->mutex);
  }
  gm__release(device->services, stream, sizeof *stream);
}

gm_status gm__vulkan_stream_may_submit(const gm__vulkan_stream *stream, const char *op, gm_error *err) {
  if (stream->timeline) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, op,
                  "the engine lent this queue without leave to submit (may_submit false): do it in the engine's own "
                  "command buffers");
}

void gm__vulkan_stream_lock(gm__vulkan_stream *stream) {
  if (stream->lock) {
    gm__rank_check_submit(); /* the engine may wait, or call gm */
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

/* Inside the queue's lock. */
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

gm_status gm__vulkan_stream_submit(gm__vulkan_stream *stream, VkCommandBuffer commands, const gm_backend_point *wait,
                                   gm_backend_point *out, gm_error *err) {
  gm__vulkan_timeline *timeline = stream->timeline;
  gm__vulkan_stream_lock(stream); /* first: an engine's hook may wait, and may call gm */
  gm__mutex_lock(&stream->mutex);
  uint64_t value = timeline->last + 1;
  VkResult result = stream_submit_value(stream, commands, wait, value);
  if (!result) timeline->last = value;
  if (!result && wait) stream->waited = true;
  gm__mutex_unlock(&stream->mutex);
  gm__vulkan_stream_unlock(stream);
  if (result) return gm__vulkan_device_fail(stream->device, result, "vkQueueSubmit", err);
  if (out) *out = (gm_backend_point){(uint64_t)timeline->handle, value};
  return GM_OK;
}

gm_status gm__vulkan_stream_barrier(void *device, void *user, gm_error *err) {
  gm__vulkan_stream *stream = user;
  gm__vulkan_recording recording;
  gm_status status = gm__vulkan_stream_may_submit(stream, "gm_backend_ops.stream_barrier", err);
  if (!status) status = gm__vulkan_command_begin(device, stream->queue->family, &recording, err);
  if (!status) status = gm__vulkan_command_submit(&recording, stream, NULL, err); /* it is barriers all through */
  return status;
}

gm_status gm__vulkan_stream_drain(gm__vulkan_stream *stream, gm_error *err) {
  gm_status status = gm__vulkan_stream_may_submit(stream, "gm_backend_ops.stream_sync", err);
  /* What gm submitted ends with a barrier that reaches the host; what an engine submitted may not. */
  if (!status && stream->adopted) status = gm__vulkan_stream_barrier(stream->device, stream, err);
  return status ? status : stream_await_last(stream, err);
}

bool gm__vulkan_stream_may_drain(gm__vulkan_stream *stream, const gm_backend_point *out) {
  if (!out) return true;
  if (stream->adopted) return false; /* the engine may have submitted what gm does not know of */
  gm__mutex_lock(&stream->mutex);
  const gm_backend_point last = {.handle = (uint64_t)stream->timeline->handle, .value = stream->timeline->last};
  gm__mutex_unlock(&stream->mutex);
  bool done = false;
  return gm__vulkan_point_done(stream->device, &last, &done, NULL) == GM_OK && done;
}

gm_status gm__vulkan_stream_flush(void *device, void *stream, gm_error *err) {
  (void)stream; /* submitted is submitted */
  return gm__vulkan_device_state(device, err);
}

gm_status gm__vulkan_stream_sync(void *device, void *user, gm_error *err) {
  gm_status status = gm__vulkan_stream_drain(user, err);
  return status ? status : gm__vulkan_device_state(device, err);
}

gm_status gm__vulkan_point_import(void *device, const gm_native_point *given, gm_backend_point *out, gm_error *err) {
  static const char op[] = "gm_backend_ops.point_import";
  (void)device;
  gm_vulkan_point native;
  const gm_status status = gm__native_in(&native, sizeof native, given, GM_API_VULKAN, op, "native", err);
  if (status) return status;
  if (!native.semaphore) return gm__bad_argument(err, op, "`native`: semaphore is 0");
  *out = (gm_backend_point){native.semaphore, native.value};
  return GM_OK;
}

gm_status gm__vulkan_point_native(void *device, const gm_backend_point *point, gm_native_point *given, gm_error *err) {
  (void)device;
  const gm_vulkan_point told = {.head = *given, .semaphore = point->handle, .value = point->value};
  const gm_status status =
      gm__native_check(given, sizeof told, GM_API_VULKAN, "gm_backend_ops.point_native", "out", err);
  if (status) return status;
  gm__sized_out(given, &told, sizeof told);
  return GM_OK;
}

/* On gm's own queue all work of the stream is gm's; on an engine's there may be more than gm knows of. */
gm_status gm__vulkan_point_record(void *device, void *user, gm_backend_point *out, gm_error *err) {
  gm__vulkan_stream *stream = user;
  gm_status status = gm__vulkan_stream_may_submit(stream, "gm_backend_ops.point_record", err);
  if (!status) status = gm__vulkan_device_state(device, err);
  if (status) return status;
  if (stream->adopted) return gm__vulkan_stream_submit(stream, VK_NULL_HANDLE, NULL, out, err);
  gm__mutex_lock(&stream->mutex);
  uint64_t last = stream->timeline->last;
  gm__mutex_unlock(&stream->mutex);
  *out = (gm_backend_point){last ? (uint64_t)stream->timeline->handle : 0, last};
  return GM_OK;
}

gm_status gm__vulkan_point_done(void *user, const gm_backend_point *point, bool *out, gm_error *err) {
  gm__vulkan_device *device = user;
  uint64_t value = UINT64_MAX;
  if (point->handle) {
    VkSemaphore semaphore = (VkSemaphore)point->handle;
    VkResult result = device->syms.vkGetSemaphoreCounterValue(device->handle, semaphore, &value);
    if (result) return gm__vulkan_device_fail(device, result, "vkGetSemaphoreCounterValue", err);
  }
  *out = value >= point->value;
  return GM_OK;
}

gm_status gm__vulkan_point_wait(void *device, const gm_backend_point *point, uint64_t timeout_ns, gm_error *err) {
  if (!point->handle) return GM_OK;
  return point_await(device, (VkSemaphore)point->handle, point->value, timeout_ns, err);
}

gm_status gm__vulkan_point_wait_on(void *device, void *user, const gm_backend_point *point, gm_error *err) {
  (void)device;
  gm_status status = gm__vulkan_stream_may_submit(user, "gm_backend_ops.point_wait_on", err);
  if (status || !point->handle) return status;
  return gm__vulkan_stream_submit(user, VK_NULL_HANDLE, point, NULL, err);
}

gm_status gm__vulkan_point_copy(void *device, const gm_backend_point *point, gm_backend_point *out, gm_error *err) {
  (void)device, (void)err;
  *out = *point;
  return GM_OK;
}

void gm__vulkan_point_release(void *device, const gm_backend_point *point, gm_close_mode mode) {
  (void)device, (void)point, (void)mode; /* a value of a semaphore that lives as long as the device */
}

void gm__vulkan_timelines_settle(gm__vulkan_device *device) {
  for (gm__vulkan_timeline *timeline = device->timelines; timeline; timeline = timeline->next) {
    if (timeline->last) point_await(device, timeline->handle, timeline->last, UINT64_MAX, NULL);
  }
}

void gm__vulkan_timelines_clear(gm__vulkan_device *device) {
  for (gm__vulkan_timeline *timeline = device->timelines; timeline; timeline = timeline->next) {
    device->syms.vkDestroySemaphore(device->handle, timeline->handle, NULL);
  }
}

void gm__vulkan_timelines_forget(gm__vulkan_device *device) {
  while (device->timelines) {
    gm__vulkan_timeline *timeline = device->timelines;
    device->timelines = timeline->next;
    gm__release(device->services, timeline, sizeof *timeline);
  }
  while (device->queues) {
    gm__vulkan_queue *queue = device->queues;
    device->queues = queue->next;
    gm__release(device->services, queue, sizeof *queue);
  }
}
