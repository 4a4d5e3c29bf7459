/* The life of memory: made from a wish, and unmade. */
#ifndef GM_BACKENDS_VULKAN_MEM_OPEN_H
#define GM_BACKENDS_VULKAN_MEM_OPEN_H

#include "backends/vulkan/vulkan_mem.h"

typedef struct gm__vulkan_memory_wish {
  const gm__vulkan_type *type;
  uint64_t bytes;
  uint64_t align;      /* of the address; 0: any */
  uint64_t room;       /* bytes of the memory beside the buffer, which moves to an aligned address; 0: it does not */
  uint32_t flags;      /* gm_alloc_flags */
  gm_share_kind share; /* the memory is to be exported, or comes from another process, in this way */
  float priority;      /* 0: the driver's default */
  bool inner;          /* as in gm__vulkan_buffer_params */
  /* The members below are for an import. */
  bool import;    /* the memory is behind `fd`, or at `pages` */
  void *pages;    /* the caller's host memory, of `whole_bytes` */
  bool dedicated; /* the exporter allocated it for one buffer */
  bool taken;     /* answer: the driver owns `fd` now */
  int fd;
  uint64_t offset;       /* of the memory's first byte */
  uint64_t buffer_bytes; /* of the exporter's buffer, or `whole_bytes` */
  uint64_t whole_bytes;  /* of the exporter's allocation, or of the host's pages */
} gm__vulkan_memory_wish;

/* Make memory, and count it in its heap unless it is an import. gm checks the limits before it asks the driver:
 * ALLOCATION_TOO_LARGE, OUT_OF_DEVICE_MEMORY (heap full by gm's own count, or too many allocations). */
gm_status gm__vulkan_memory_make(gm__vulkan_device *device, gm__vulkan_memory_wish *wish, gm__vulkan_memory **out,
                                 gm_error *err);
void gm__vulkan_memory_unmake(gm__vulkan_device *device, gm__vulkan_memory *memory, gm_close_mode mode);

/* Make a counted VkDeviceMemory without a buffer. gm__vulkan_memory_unmake frees it. */
gm_status gm__vulkan_memory_make_bare(gm__vulkan_device *device, const gm__vulkan_type *type, uint64_t bytes,
                                      gm__vulkan_memory **out, gm_error *err);

#endif
