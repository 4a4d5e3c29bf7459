/* Reserved VA ranges, and the physical memory that is bound to them. A range is a sparse buffer. */
#ifndef GM_BACKENDS_VULKAN_RANGE_H
#define GM_BACKENDS_VULKAN_RANGE_H

#include "backends/vulkan/vulkan_device.h"

/* Physical memory. It is freed when neither its handle nor a mapping is left. */
typedef struct gm__vulkan_piece {
  gm__vulkan_memory *memory;
  uint64_t uses;
} gm__vulkan_piece;

/* One part of a range that has memory. */
typedef struct gm__vulkan_mapping {
  uint64_t at, bytes; /* in the range */
  gm__vulkan_piece *piece;
  uint64_t offset; /* in the piece */
  bool busy;       /* a thread binds it now, without the sparse lock */
} gm__vulkan_mapping;

struct gm__vulkan_range {
  gm__vulkan_range *next;
  VkBuffer buffer;
  uint64_t buffer_bytes;
  uint64_t buffer_at; /* the offset in `buffer` of the range's first byte, whose address is aligned */
  uint64_t address, bytes;
  gm__vulkan_mapping *mappings; /* ordered by `at` */
  uint64_t count, capacity;
};

/* The range that holds [address, address + bytes), or NULL. REQUIRES: sparse lock. */
gm__vulkan_range *gm__vulkan_range_find(const gm__vulkan_device *device, uint64_t address, uint64_t bytes);

/* Remove one use. REQUIRES: sparse lock, unless `mode` is GM_CLOSE_ABANDON. */
void gm__vulkan_piece_drop(gm__vulkan_device *device, gm__vulkan_piece *piece, gm_close_mode mode);

#endif
