/* Streams: an order of submissions to one VkQueue, counted by a timeline semaphore; and points, its values. */
#ifndef GM_BACKENDS_VULKAN_STREAM_H
#define GM_BACKENDS_VULKAN_STREAM_H

#include "backends/vulkan/vulkan_device.h"

/* One VkQueue in use; its mutex guards the submissions of streams that came without locks of the engine. */
struct gm__vulkan_queue {
  gm__vulkan_queue *next;
  VkQueue handle;
  uint32_t family;
  uint32_t users;
  gm__mutex mutex;
};

/* A timeline semaphore; lives as long as the device and serves one stream after the other. */
struct gm__vulkan_timeline {
  gm__vulkan_timeline *next;
  VkSemaphore handle;
  uint64_t last; /* value that the last submission will set; under the stream's mutex */
  bool taken;    /* by a stream; under the device's mutex */
};

struct gm__vulkan_stream {
  gm__vulkan_stream *next_binder; /* under the mutex of gm__vulkan_sparse */
  uint32_t binds;                 /* under it, too: threads that bind on this queue, which keep it open */
  gm__vulkan_device *device;
  gm__vulkan_queue *queue;
  gm__vulkan_timeline *timeline; /* NULL where gm may not submit */
  gm__mutex mutex;               /* submissions: values of a timeline rise in their order */
  bool waited;                   /* under the mutex: a submission waited for a point of another timeline */
  bool adopted;
  void (*lock)(void *user);
  void (*unlock)(void *user);
  void *user;
};

/* The record of a queue, one use more; NULL without host memory. One use less. */
gm__vulkan_queue *gm__vulkan_queue_get(gm__vulkan_device *device, VkQueue handle, uint32_t family);
void gm__vulkan_queue_put(gm__vulkan_device *device, gm__vulkan_queue *queue);

/* Around every use of the stream's queue. */
void gm__vulkan_stream_lock(gm__vulkan_stream *stream);
void gm__vulkan_stream_unlock(gm__vulkan_stream *stream);

/* NOT_SUPPORTED, with the reason, where gm may not submit. */
gm_status gm__vulkan_stream_may_submit(const gm__vulkan_stream *stream, const char *op, gm_error *err);

/* Submit `commands` (may be NULL) after `wait` (may be NULL); *out is the point behind it. */
gm_status gm__vulkan_stream_submit(gm__vulkan_stream *stream, VkCommandBuffer commands, const gm_backend_point *wait,
                                   gm_backend_point *out, gm_error *err);

/* The host waits until all work of the stream is done and can be seen by it. */
gm_status gm__vulkan_stream_drain(gm__vulkan_stream *stream, gm_error *err);

/* May a call work through the mapping of host-visible memory, which means draining the stream first? A call that gives
 * a point (`out`) must not wait: only where nothing can be running. */
bool gm__vulkan_stream_may_drain(gm__vulkan_stream *stream, const gm_backend_point *out);

/* Of every timeline of the device: wait for its last value; destroy it; give back its host memory. */
void gm__vulkan_timelines_settle(gm__vulkan_device *device);
void gm__vulkan_timelines_clear(gm__vulkan_device *device);
void gm__vulkan_timelines_forget(gm__vulkan_device *device);

/* The seam's entries of groups 5 (stream_adopt, point_import), 12, 13 and 23. */
gm_status gm__vulkan_stream_create(void *device, void **out_stream, gm_stream_kind *out_kind, gm_error *err);
gm_status gm__vulkan_stream_adopt(void *device, const gm_native_stream *native, void **out_stream,
                                  gm_stream_kind *out_kind, gm_error *err);
gm_status gm__vulkan_stream_same(void *device, void *stream, const gm_native_stream *native, bool *out, gm_error *err);
void gm__vulkan_stream_close(void *device, void *stream, gm_close_mode mode);
gm_status gm__vulkan_stream_flush(void *device, void *stream, gm_error *err);
gm_status gm__vulkan_stream_sync(void *device, void *stream, gm_error *err);
gm_status gm__vulkan_stream_barrier(void *device, void *stream, gm_error *err);
gm_status gm__vulkan_point_native(void *device, const gm_backend_point *point, gm_native_point *out, gm_error *err);
gm_status gm__vulkan_point_import(void *device, const gm_native_point *native, gm_backend_point *out, gm_error *err);
gm_status gm__vulkan_point_record(void *device, void *stream, gm_backend_point *out, gm_error *err);
gm_status gm__vulkan_point_done(void *device, const gm_backend_point *point, bool *out, gm_error *err);
gm_status gm__vulkan_point_wait(void *device, const gm_backend_point *point, uint64_t timeout_ns, gm_error *err);
gm_status gm__vulkan_point_wait_on(void *device, void *stream, const gm_backend_point *point, gm_error *err);
gm_status gm__vulkan_point_copy(void *device, const gm_backend_point *point, gm_backend_point *out, gm_error *err);
void gm__vulkan_point_release(void *device, const gm_backend_point *point, gm_close_mode mode);

#endif
