/* The record of memory: one VkDeviceMemory with one VkBuffer over all of it, or the engine's. */
#ifndef GM_BACKENDS_VULKAN_MEM_H
#define GM_BACKENDS_VULKAN_MEM_H

#include "backends/vulkan/vulkan_device.h"

/* Immutable but for the mapping, which gm makes under the device lock. */
struct gm__vulkan_memory {
  VkDeviceMemory memory;
  VkBuffer buffer;
  uint64_t bytes; /* usable */
  uint64_t buffer_bytes;
  uint64_t address;   /* of the first usable byte; 0: none */
  uint64_t allocated; /* bytes of the VkDeviceMemory; 0 for wrapped memory: not known */
  uint64_t counted;   /* bytes held in its heap; 0 for memory of another process */
  uint64_t
      memory_at; /* the offset of the first usable byte: 0 unless wrapped, shared, or moved to an aligned address */
  uint64_t buffer_at; /* the same offset in `buffer` */
  gm__vulkan_type type;
  gm_share_kind share; /* made to be exported, or imported, in this way */
  bool wrapped;
  bool live;              /* counts as an allocation of the device */
  bool dedicated;         /* made for its buffer alone: no views */
  bool host;              /* the caller's host memory: no type's memory is taken */
  bool range;             /* a part of a reserved range's sparse buffer: `memory` is null */
  void *_Atomic mapped;   /* host address of the first usable byte, from the first mapping until the memory is freed */
  _Atomic uint32_t users; /* mappings that callers have */
};

/* The record behind a memory of the seam. */
static inline gm__vulkan_memory *gm__vulkan_memory_of(const gm_memory *memory) {
  return (gm__vulkan_memory *)(uintptr_t)memory->handle;
}

/* The seam's memory for a record. */
static inline gm_memory gm__vulkan_memory_describe(const gm__vulkan_memory *memory, uint32_t type) {
  return (gm_memory){.handle = (uintptr_t)memory,
                     .address = memory->address,
                     .bytes = memory->bytes,
                     .type = type,
                     .wrapped = memory->wrapped || memory->range};
}

#endif
