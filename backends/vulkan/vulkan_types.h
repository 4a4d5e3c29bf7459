/* The memory types of the seam: Vulkan's, ordered by preference for data that kernels use. */
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

/* Fill `out` with the types of `bits` (memoryTypeBits) that gm uses, and return their number. `split`: memory that is
 * both device-local and host-visible becomes two types, one for each property. */
uint32_t gm__vulkan_types_list(const gm__vulkan_physical *physical, uint32_t bits, bool split,
                               gm__vulkan_type out[VULKAN_MAX_TYPES]);

/* The alignment for every block and view. `buffer_alignment` is the driver's requirement for a buffer; 0: not asked
 * yet. */
uint64_t gm__vulkan_alignment(const gm__vulkan_physical *physical, uint64_t buffer_alignment);

#endif
