/* gm's VkBuffers: they have every usage. All queue families of the device share them, unless the engine wants them
 * exclusive. */
#ifndef GM_BACKENDS_VULKAN_BUFFER_H
#define GM_BACKENDS_VULKAN_BUFFER_H

#include "backends/vulkan/vulkan_syms.h"

typedef struct gm__vulkan_device gm__vulkan_device;

typedef struct gm__vulkan_buffer_params {
  uint64_t bytes;
  gm_share_kind share; /* the memory comes from another process, or goes to one, in this way */
  bool host;           /* the memory is the caller's host memory */
  bool sparse;         /* the buffer has no memory until pieces are bound to it */
  bool no_address;     /* the memory was not made for device addresses */
  bool inner;          /* only gm uses the buffer, on queues of any family: nobody could transfer its ownership */
} gm__vulkan_buffer_params;

typedef struct gm__vulkan_needs {
  uint64_t bytes, alignment;
  uint32_t type_bits;
  bool dedicated; /* required or preferred */
} gm__vulkan_needs;

gm_status gm__vulkan_buffer_create(gm__vulkan_device *device, const gm__vulkan_buffer_params *params, VkBuffer *out,
                                   gm_error *err);

/* The driver's requirements for the memory of `buffer`. They are not checked. */
gm__vulkan_needs gm__vulkan_buffer_needs(const gm__vulkan_device *device, VkBuffer buffer);

/* Make a buffer with `params` to ask for its requirements, and destroy it. */
gm_status gm__vulkan_buffer_ask(gm__vulkan_device *device, const gm__vulkan_buffer_params *params,
                                gm__vulkan_needs *out, gm_error *err);

/* The device address of a sparse buffer, or of one with memory. 0 where the device has no addresses. DRIVER when the
 * driver gives none. */
gm_status gm__vulkan_buffer_address(const gm__vulkan_device *device, VkBuffer buffer, uint64_t *out, gm_error *err);

#endif
