/* Memory: one VkDeviceMemory with one VkBuffer over all of it, or the engine's. */
#ifndef GM_BACKENDS_VULKAN_MEM_H
#define GM_BACKENDS_VULKAN_MEM_H

#include "backends/vulkan/vulkan_types.h"

typedef struct gm__vulkan_device gm__vulkan_device;

/* Immutable but for the mapping, which is made under the device's mutex. */
typedef struct gm__vulkan_memory {
  VkDeviceMemory memory;
  VkBuffer buffer;
  uint64_t bytes;     /* usable */
  uint64_t allocated; /* of the VkDeviceMemory; 0 for wrapped memory: not known */
  uint64_t memory_at; /* where usable bytes begin: 0 unless wrapped */
  uint64_t buffer_at;
  gm__vulkan_type type;
  bool wrapped;
  bool dedicated;         /* made for its buffer alone: no views */
  void *_Atomic mapped;   /* host address of the first usable byte once mapped; then until freed */
  _Atomic uint32_t users; /* mappings handed out */
} gm__vulkan_memory;

/* The record behind a seam memory. */
static inline gm__vulkan_memory *gm__vulkan_memory_of(const gm_memory *memory) {
  return (gm__vulkan_memory *)(uintptr_t)memory->handle;
}

/* Memory of that seam type, counted in its heap. `flags`: gm_alloc_flags. Checked before the driver is asked:
 * ALLOCATION_TOO_LARGE, OUT_OF_DEVICE_MEMORY (heap full by gm's own count, or too many allocations). */
gm_status gm__vulkan_memory_make(gm__vulkan_device *device, const gm__vulkan_type *type, uint64_t bytes, uint32_t flags,
                                 gm__vulkan_memory **out, gm_error *err);
void gm__vulkan_memory_unmake(gm__vulkan_device *device, gm__vulkan_memory *memory, gm_close_mode mode);

/* The seam's entries of groups 5 (memory_wrap), 8 and 9. */
gm_status gm__vulkan_memory_wrap(void *device, const gm_native_memory *native, gm_memory *out, gm_error *err);
gm_status gm__vulkan_memory_alloc(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err);
gm_status gm__vulkan_memory_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err);
gm_status gm__vulkan_memory_native(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                   gm_native_memory *out, gm_error *err);
gm_status gm__vulkan_view_create(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, uint32_t usage,
                                 uint64_t *out_view, gm_error *err);
gm_status gm__vulkan_view_destroy(void *device, uint64_t view, gm_close_mode mode, gm_error *err);

#endif
