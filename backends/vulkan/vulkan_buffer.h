/* VkBuffers of gm's kind: every usage, shared by the device's queue families. */
#ifndef GM_BACKENDS_VULKAN_BUFFER_H
#define GM_BACKENDS_VULKAN_BUFFER_H

#include "backends/vulkan/vulkan_syms.h"

typedef struct gm__vulkan_device gm__vulkan_device;

typedef struct gm__vulkan_buffer_params {
  uint64_t bytes;
  gm_share_kind share; /* the memory behind it comes from or goes to another process in this way */
  bool sparse;         /* nothing is behind it until it is bound, in pieces */
  bool no_address;     /* the memory behind it was not made for device addresses */
} gm__vulkan_buffer_params;

typedef struct gm__vulkan_needs {
  uint64_t bytes, alignment;
  uint32_t type_bits;
  bool dedicated; /* required or preferred */
} gm__vulkan_needs;

gm_status gm__vulkan_buffer_create(gm__vulkan_device *device, const gm__vulkan_buffer_params *params, VkBuffer *out,
                                   gm_error *err);

/* What memory the driver wants behind it: not checked. */
gm__vulkan_needs gm__vulkan_buffer_needs(const gm__vulkan_device *device, VkBuffer buffer);

/* The same of a buffer of those params that is made for the question. */
gm_status gm__vulkan_buffer_ask(gm__vulkan_device *device, const gm__vulkan_buffer_params *params,
                                gm__vulkan_needs *out, gm_error *err);

/* Its device address, once memory is behind it or it is sparse; 0 where the device has none. DRIVER for an address that
 * is none. */
gm_status gm__vulkan_buffer_address(const gm__vulkan_device *device, VkBuffer buffer, uint64_t *out, gm_error *err);

#endif
