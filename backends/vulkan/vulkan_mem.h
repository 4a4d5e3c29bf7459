/* Memory: one VkDeviceMemory with one VkBuffer over all of it, or the engine's. */
#ifndef GM_BACKENDS_VULKAN_MEM_H
#define GM_BACKENDS_VULKAN_MEM_H

#include "backends/vulkan/vulkan_types.h"

typedef struct gm__vulkan_device gm__vulkan_device;

/* Immutable but for the mapping, which is made under the device's mutex. */
typedef struct gm__vulkan_memory {
  VkDeviceMemory memory;
  VkBuffer buffer;
  uint64_t bytes; /* usable */
  uint64_t buffer_bytes;
  uint64_t address;   /* of the first usable byte; 0: none */
  uint64_t allocated; /* of the VkDeviceMemory; 0 for wrapped memory: not known */
  uint64_t counted;   /* bytes held in its heap: 0 for memory of another process */
  uint64_t memory_at; /* where usable bytes begin: 0 unless wrapped, shared, or moved to an aligned address */
  uint64_t buffer_at;
  gm__vulkan_type type;
  gm_share_kind share; /* made for it, or come by it */
  bool wrapped;
  bool live;              /* counts as an allocation of the device */
  bool dedicated;         /* made for its buffer alone: no views */
  bool range;             /* a piece of a sparse buffer, which is its reservation's: `memory` is null */
  void *_Atomic mapped;   /* host address of the first usable byte once mapped; then until freed */
  _Atomic uint32_t users; /* mappings handed out */
} gm__vulkan_memory;

/* The record behind a seam memory. */
static inline gm__vulkan_memory *gm__vulkan_memory_of(const gm_memory *memory) {
  return (gm__vulkan_memory *)(uintptr_t)memory->handle;
}

/* What memory is made from. */
typedef struct gm__vulkan_memory_wish {
  const gm__vulkan_type *type;
  uint64_t bytes;
  uint64_t align;        /* of the address; 0: as it comes */
  uint64_t offset;       /* of what comes: where its bytes begin */
  uint64_t buffer_bytes; /* of what comes */
  uint32_t flags;        /* gm_alloc_flags */
  gm_share_kind share;   /* made to leave, or come from another process in this way */
  bool import;           /* the memory is behind `fd` */
  int fd;
  bool taken;           /* answer: `fd` is the driver's */
  uint64_t whole_bytes; /* of what comes */
  bool dedicated;       /* it was allocated for one buffer */
} gm__vulkan_memory_wish;

/* Memory, counted in its heap unless it comes from elsewhere. Checked before the driver is asked:
 * ALLOCATION_TOO_LARGE, OUT_OF_DEVICE_MEMORY (heap full by gm's own count, or too many allocations). */
gm_status gm__vulkan_memory_make(gm__vulkan_device *device, gm__vulkan_memory_wish *wish, gm__vulkan_memory **out,
                                 gm_error *err);
void gm__vulkan_memory_unmake(gm__vulkan_device *device, gm__vulkan_memory *memory, gm_close_mode mode);

/* A VkDeviceMemory without a buffer, counted. `bytes` fit the type; given back by gm__vulkan_memory_unmake. */
gm_status gm__vulkan_memory_make_bare(gm__vulkan_device *device, const gm__vulkan_type *type, uint64_t bytes,
                                      gm__vulkan_memory **out, gm_error *err);

/* As the seam shows it. */
gm_memory gm__vulkan_memory_describe(const gm__vulkan_memory *memory, uint32_t type);

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
