/* Memory types as the seam presents them: Vulkan's, in order of preference for data that kernels use. */
#ifndef GM_BACKENDS_VULKAN_TYPES_H
#define GM_BACKENDS_VULKAN_TYPES_H

#include "backends/vulkan/vulkan_physical.h"

enum { VULKAN_MAX_TYPES = 32 };

typedef struct gm__vulkan_type {
  uint32_t index; /* into VkPhysicalDeviceMemoryProperties.memoryTypes */
  uint32_t heap;
  uint32_t flags; /* gm_memory_flags as presented */
  bool coherent;  /* needs no flush or invalidate */
  uint64_t atom;  /* 1 if coherent */
  uint64_t heap_bytes;
  uint64_t max_bytes; /* of one allocation */
} gm__vulkan_type;

/* Fills `out` with the types of `bits` (memoryTypeBits) that gm uses, at most VULKAN_MAX_TYPES; returns how many.
 * `split`: device-local memory that is also host-visible is presented as two types, each with one half of it. */
uint32_t gm__vulkan_types_list(const gm__vulkan_physical *physical, uint32_t bits, bool split,
                               gm__vulkan_type out[VULKAN_MAX_TYPES]);

/* Alignment that suits every block and view; `buffer_alignment` is what the driver asked of a buffer, 0 before that. */
uint64_t gm__vulkan_alignment(const gm__vulkan_physical *physical, uint64_t buffer_alignment);

/* The seam's entries of group 7. */
gm_status gm__vulkan_memory_type_count(void *device, uint32_t *out, gm_error *err);
gm_status gm__vulkan_memory_type(void *device, uint32_t type, gm_memory_type *out, gm_error *err);

#endif
