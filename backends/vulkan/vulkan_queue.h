/* Queues, and streams as orders of submissions to them. A timeline counts the submissions of a stream. */
#ifndef GM_BACKENDS_VULKAN_QUEUE_H
#define GM_BACKENDS_VULKAN_QUEUE_H

#include "backends/vulkan/vulkan_timeline.h"

/* One VkQueue in use. The streams of the queue share the record. */
struct gm__vulkan_queue {
  gm__vulkan_queue *next;
  VkQueue handle;
  uint32_t family;
  uint32_t users;
  gm__mutex mutex; /* around submissions, where the engine lent no lock of its own */
};

struct gm__vulkan_stream {
  gm__vulkan_stream *next_binder; /* guarded by the sparse lock */
  uint32_t binds;                 /* threads that bind on this queue, which keep it open; guarded by the sparse lock */
  gm__vulkan_device *device;
  gm__vulkan_queue *queue;
  gm__vulkan_timeline *timeline; /* NULL where gm may not submit */
  gm__mutex mutex;               /* the stream lock: a timeline's values rise in the order of submission */
  bool waited;                   /* a submission has waited for another timeline's point; guarded by the stream lock */
  bool adopted;
  void (*lock)(void *user);
  void (*unlock)(void *user);
  void *user;
};

/* The queue of gm's own device for `family`. */
gm_status gm__vulkan_queue_handle(const gm__vulkan_device *device, uint32_t family, VkQueue *out, gm_error *err);

/* Get adds a use to the record of a queue; NULL: no host memory. Put removes one. Forget releases every record. */
gm__vulkan_queue *gm__vulkan_queue_get(gm__vulkan_device *device, VkQueue handle, uint32_t family);
void gm__vulkan_queue_put(gm__vulkan_device *device, gm__vulkan_queue *queue);
void gm__vulkan_queues_forget(gm__vulkan_device *device);

/* The queue lock. It must be held around each use of the stream's queue. */
void gm__vulkan_stream_lock(gm__vulkan_stream *stream);
void gm__vulkan_stream_unlock(gm__vulkan_stream *stream);

/* NOT_SUPPORTED, with the reason, where gm may not submit. */
gm_status gm__vulkan_stream_may_submit(const gm__vulkan_stream *stream, const char *op, gm_error *err);

/* Submit `commands` after `wait`. Both may be NULL. *out is the point after them. REQUIRES: a device without timeline
 * semaphores has `wait` NULL. */
gm_status gm__vulkan_stream_submit(gm__vulkan_stream *stream, VkCommandBuffer commands, const gm_backend_point *wait,
                                   gm_backend_point *out, gm_error *err);

#endif
