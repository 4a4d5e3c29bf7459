/* Command buffers for gm's own copies. A command pool belongs to one recording thread at a time: it is taken for the
 * recording and put back after the submission, so there are as many as threads ever recorded at once, per family. */
#ifndef GM_BACKENDS_VULKAN_COMMAND_H
#define GM_BACKENDS_VULKAN_COMMAND_H

#include "backends/vulkan/vulkan_stream.h"

typedef struct gm__vulkan_command gm__vulkan_command;

/* An open recording; `buffer` is what to record into. */
typedef struct gm__vulkan_recording {
  gm__vulkan_device *device;
  gm__vulkan_command_pool *pool;
  gm__vulkan_command *command;
  VkCommandBuffer buffer;
} gm__vulkan_recording;

/* Begin with a full barrier: what follows sees everything before it. Ends in exactly one submit or cancel. */
gm_status gm__vulkan_command_begin(gm__vulkan_device *device, uint32_t family, gm__vulkan_recording *out,
                                   gm_error *err);

/* A full barrier, which also reaches the host. */
void gm__vulkan_command_barrier(const gm__vulkan_recording *recording);

/* End with a full barrier and submit to `stream`, whose family it was begun with. *out (may be NULL) is its point. */
gm_status gm__vulkan_command_submit(gm__vulkan_recording *recording, gm__vulkan_stream *stream, gm_backend_point *out,
                                    gm_error *err);
void gm__vulkan_command_cancel(gm__vulkan_recording *recording);

/* Destroy every pool of the device; give back their host memory. */
void gm__vulkan_command_clear(gm__vulkan_device *device);
void gm__vulkan_command_forget(gm__vulkan_device *device);

#endif
