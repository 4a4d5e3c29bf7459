/* Host memory that the device reaches itself: the driver's, and the caller's (VK_EXT_external_memory_host). Copies find
 * it as ranges. The caller's can be wrapped, too. Thread-safe. */
#ifndef GM_BACKENDS_VULKAN_HOST_H
#define GM_BACKENDS_VULKAN_HOST_H

#include "backends/vulkan/vulkan_mem.h"

/* Finds out which memory types host memory can have. REQUIRES: the device's entries. */
void gm__vulkan_host_ask(gm__vulkan_device *device);

/* Imports the caller's memory: a VkDeviceMemory and a buffer over the whole pages that hold it, and a record whose
 * first byte is `pointer`. gm__vulkan_memory_unmake ends it, and leaves the caller's memory alone. NOT_SUPPORTED: the
 * device cannot, or not this memory. INVALID_ARGUMENT: the driver refuses the memory. */
gm_status gm__vulkan_host_import(gm__vulkan_device *device, void *pointer, uint64_t bytes, const char *op,
                                 gm__vulkan_memory **out, uint32_t *out_type, gm_error *err);

/* Makes memory that the host sees, and maps it. It takes the best of all types for the host. `coherent`: one that
 * nobody flushes. NOT_SUPPORTED: there is no such type. Other answers are those of gm__vulkan_memory_make. */
gm_status gm__vulkan_host_make(gm__vulkan_device *device, uint64_t bytes, bool coherent, const char *op,
                               gm__vulkan_memory **out, unsigned char **out_host, gm_error *err);

/* A registered range that a copy holds. */
typedef struct gm__vulkan_host_range gm__vulkan_host_range;

/* Takes the registered range that has all of the bytes. NULL: there is none. *out_offset: of `pointer` in it. */
gm__vulkan_host_range *gm__vulkan_host_take(gm__vulkan_device *device, const void *pointer, uint64_t bytes,
                                            uint64_t *out_offset);
const gm__vulkan_memory *gm__vulkan_host_memory(const gm__vulkan_host_range *range);

/* Gives the range back. The device uses it until `point`, which is zero where nothing was submitted. */
void gm__vulkan_host_give(gm__vulkan_device *device, gm__vulkan_host_range *range, const gm_backend_point *point);

/* Frees the records that are left: in a forked child, or on a lost device. */
void gm__vulkan_host_forget(gm__vulkan_device *device);

#endif
