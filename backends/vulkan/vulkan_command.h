/* Command buffers for gm's own copies. A recording takes a command pool and puts it back after the submission. So each
 * family has as many pools as threads have ever recorded at once. */
#ifndef GM_BACKENDS_VULKAN_COMMAND_H
#define GM_BACKENDS_VULKAN_COMMAND_H

#include "backends/vulkan/vulkan_queue.h"

typedef struct gm__vulkan_command gm__vulkan_command;

/* An open recording. Commands go into `buffer`. */
typedef struct gm__vulkan_recording {
  gm__vulkan_device *device;
  gm__vulkan_command_pool *pool;
  gm__vulkan_command *command;
  VkCommandBuffer buffer;
} gm__vulkan_recording;

/* Begin a recording with a full barrier: its commands see all earlier work. One submit or cancel ends it. */
gm_status gm__vulkan_command_begin(gm__vulkan_device *device, uint32_t family, gm__vulkan_recording *out,
                                   gm_error *err);

/* Record a full barrier, which also reaches the host. */
void gm__vulkan_command_barrier(const gm__vulkan_recording *recording);

/* End with a full barrier, and submit to `stream`. Its family is the one of the begin. *out (may be NULL) is the point.
 */
gm_status gm__vulkan_command_submit(gm__vulkan_recording *recording, gm__vulkan_stream *stream, gm_backend_point *out,
                                    gm_error *err);
void gm__vulkan_command_cancel(gm__vulkan_recording *recording);

/* For every pool of the device: clear destroys it, forget releases its record. */
void gm__vulkan_command_clear(gm__vulkan_device *device);
void gm__vulkan_command_forget(gm__vulkan_device *device);

#endif
