/* Host access to memory. gm maps memory once, at the first need, until it is freed. */
#ifndef GM_BACKENDS_VULKAN_MAP_H
#define GM_BACKENDS_VULKAN_MAP_H

#include "backends/vulkan/vulkan_mem.h"

/* May the host reach this memory? For wrapped memory only where the engine gave its mapping. */
bool gm__vulkan_visible(const gm__vulkan_memory *memory);

/* The host address of the first usable byte. REQUIRES: `memory` is host-visible. */
gm_status gm__vulkan_host(gm__vulkan_device *device, gm__vulkan_memory *memory, unsigned char **out, gm_error *err);

/* Flush lets the device see host writes. Invalidate lets the host see device writes. Both widen the range to whole
 * atoms, and do nothing on coherent memory. */
gm_status gm__vulkan_flush(gm__vulkan_device *device, const gm__vulkan_memory *memory, uint64_t offset, uint64_t bytes,
                           gm_error *err);
gm_status gm__vulkan_invalidate(gm__vulkan_device *device, const gm__vulkan_memory *memory, uint64_t offset,
                                uint64_t bytes, gm_error *err);

/* Is the range whole atoms, or the memory coherent? If neither, the host must not write it. The flush would also write
 * the rest of an atom, which may be older than the device's bytes there. */
bool gm__vulkan_whole_atoms(const gm__vulkan_memory *memory, uint64_t offset, uint64_t bytes);

/* Make a lazy driver take the pages of a range now. The contents stay. Only drivers that run on the CPU are lazy. */
gm_status gm__vulkan_touch(gm__vulkan_device *device, gm__vulkan_memory *memory, uint64_t offset, uint64_t bytes,
                           gm_error *err);

#endif
