#include "backends/vulkan/vulkan_stream.h"

#include "backends/shared/native.h"
#include "backends/vulkan/vulkan_command.h"
#include "backends/vulkan/vulkan_entries.h"
#include "backends/vulkan/vulkan_point.h"
#include "core/base/alloc.h"
#include "core/base/error.h"

static gm_status stream_no_memory(gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_backend_ops.stream_create", "no host memory for a stream");
}

static gm_status stream_attach(gm__vulkan_stream *stream, VkQueue handle, uint32_t family, bool may_submit,
                               gm_error *err) {
  gm__vulkan_device *device = stream->device;
  gm_status status = may_submit ? gm__vulkan_timeline_take(device, handle, &stream->timeline, err) : GM_OK;
  if (status) return status;
  stream->queue = gm__vulkan_queue_get(device, handle, family);
  if (stream->queue) return GM_OK;
  gm__vulkan_timeline_put(device, stream->timeline);
  return stream_no_memory(err);
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
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_backend_ops.stream_create",
                    "gm makes no queue on an engine's device: adopt one of its queues (gm_stream_adopt)");
  }
  VkQueue handle;
  gm__vulkan_stream *stream = NULL;
  gm_status status = gm__vulkan_queue_handle(device, device->families[0], &handle, err);
  if (!status) status = stream_make(device, handle, device->families[0], true, &stream, err);
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
  gm__vulkan_stream *stream = NULL;
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

/* The name of a term that differs; NULL: none does. */
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

static uint64_t stream_mix(uint64_t sum, uint64_t word) {
  sum = (sum ^ word) * UINT64_C(0x9E3779B97F4A7C15);
  return sum ^ sum >> 29;
}

/* The terms are part of the name, so a queue on other terms is unknown, and adopting it says what differs. */
gm_status gm__vulkan_stream_name(void *device, const gm_native_stream *given, gm_stream_name *out, gm_error *err) {
  gm_vulkan_queue native;
  const gm_status status = stream_check_native(device, given, &native, err);
  if (status) return status;
  uint64_t sum = stream_mix(native.queue, native.family * UINT64_C(2) + native.may_submit);
  sum = stream_mix(sum, (uintptr_t)native.lock);
  sum = stream_mix(sum, (uintptr_t)native.unlock);
  *out = (gm_stream_name){{stream_mix(sum, (uintptr_t)native.user), 0}};
  return GM_OK;
}

/* The point after all that gm has submitted. */
static gm_backend_point stream_last(gm__vulkan_stream *stream) {
  gm__mutex_lock(&stream->mutex);
  const uint64_t last = stream->timeline->last;
  gm__mutex_unlock(&stream->mutex);
  return gm__vulkan_timeline_point(stream->timeline, last);
}

static gm_status stream_await_last(gm__vulkan_stream *stream, gm_error *err) {
  const gm_backend_point last = stream_last(stream);
  return gm__vulkan_point_wait(stream->device, &last, UINT64_MAX, err);
}

/* Wait for the end of all submitted work. Mesa's drivers release an awaited semaphore late. A thread of the queue
 * releases it after it has signalled the end, and gm may have destroyed it by then. An empty submission makes gm wait
 * for that thread. */
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
    gm__vulkan_timeline_put(device, stream->timeline);
    gm__vulkan_queue_put(device, stream->queue);
    gm__mutex_destroy(&stream->mutex);
  }
  gm__release(device->services, stream, sizeof *stream);
}

gm_status gm__vulkan_stream_barrier(void *device, void *user, gm_error *err) {
  gm__vulkan_stream *stream = user;
  gm__vulkan_recording recording;
  gm_status status = gm__vulkan_stream_may_submit(stream, "gm_backend_ops.stream_barrier", err);
  if (!status) status = gm__vulkan_command_begin(device, stream->queue->family, &recording, err);
  if (!status) status = gm__vulkan_command_submit(&recording, stream, NULL, err); /* it begins and ends with one */
  return status;
}

gm_status gm__vulkan_stream_drain(gm__vulkan_stream *stream, gm_error *err) {
  gm_status status = gm__vulkan_stream_may_submit(stream, "gm_backend_ops.stream_sync", err);
  /* gm's own submissions end with a barrier that reaches the host. The engine's may not. */
  if (!status && stream->adopted) status = gm__vulkan_stream_barrier(stream->device, stream, err);
  return status ? status : stream_await_last(stream, err);
}

bool gm__vulkan_stream_may_drain(gm__vulkan_stream *stream, const gm_backend_point *out) {
  if (!out) return true;
  if (stream->adopted) return false; /* the engine may have submitted more than gm knows */
  const gm_backend_point last = stream_last(stream);
  bool done = false;
  return gm__vulkan_point_done(stream->device, &last, &done, NULL) == GM_OK && done;
}

gm_status gm__vulkan_stream_flush(void *device, void *stream, gm_error *err) {
  (void)stream; /* Vulkan holds no submission back */
  return gm__vulkan_device_state(device, err);
}

gm_status gm__vulkan_stream_sync(void *device, void *user, gm_error *err) {
  gm_status status = gm__vulkan_stream_drain(user, err);
  return status ? status : gm__vulkan_device_state(device, err);
}

/* On gm's own queue gm has submitted all work of the stream. On an engine's queue there may be more. */
gm_status gm__vulkan_point_record(void *device, void *user, gm_backend_point *out, gm_error *err) {
  gm__vulkan_stream *stream = user;
  gm_status status = gm__vulkan_stream_may_submit(stream, "gm_backend_ops.point_record", err);
  if (!status) status = gm__vulkan_device_state(device, err);
  if (status) return status;
  if (stream->adopted) return gm__vulkan_stream_submit(stream, VK_NULL_HANDLE, NULL, out, err);
  *out = stream_last(stream);
  return GM_OK;
}

/* Without timeline semaphores no queue can wait for another one, nor for the engine's fence. */
static gm_status stream_cannot_wait(gm_error *err) {
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_backend_ops.point_wait_on",
                  "a queue cannot wait for a fence or for work of another queue without timeline semaphores "
                  "(GM_VULKAN_TIMELINE_SEMAPHORE): wait on the host (gm_point_wait)");
}

gm_status gm__vulkan_point_wait_on(void *device, void *user, const gm_backend_point *point, gm_error *err) {
  gm__vulkan_stream *stream = user;
  gm__vulkan_wait_by by = GM__VULKAN_WAIT_PASSED;
  gm_status status = gm__vulkan_stream_may_submit(stream, "gm_backend_ops.point_wait_on", err);
  if (!status) status = gm__vulkan_point_ways(device, point, stream->queue->handle, &by, err);
  if (status || by == GM__VULKAN_WAIT_PASSED) return status;
  if (by == GM__VULKAN_WAIT_NOT) return stream_cannot_wait(err);
  if (by == GM__VULKAN_WAIT_BARRIER) return gm__vulkan_stream_barrier(device, stream, err);
  return gm__vulkan_stream_submit(stream, VK_NULL_HANDLE, point, NULL, err);
}
