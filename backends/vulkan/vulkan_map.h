/* Host access to memory: mapped once, at the first need, and until it is freed. */
#ifndef GM_BACKENDS_VULKAN_MAP_H
#define GM_BACKENDS_VULKAN_MAP_H

#include "backends/vulkan/vulkan_mem.h"

/* Can the host reach it as presented? Of wrapped memory only if the engine gave its mapping. */
bool gm__vulkan_visible(const gm__vulkan_memory *memory);

/* The host address of the first usable byte. `memory` is host-visible. */
gm_status gm__vulkan_host(gm__vulkan_device *device, gm__vulkan_memory *memory, unsigned char **out, gm_error *err);

/* Make host writes seen by the device, and device writes by the host; nothing to do on coherent memory. The range is
 * widened to whole atoms. */
gm_status gm__vulkan_flush(gm__vulkan_device *device, const gm__vulkan_memory *memory, uint64_t offset, uint64_t bytes,
                           gm_error *err);
gm_status gm__vulkan_invalidate(gm__vulkan_device *device, const gm__vulkan_memory *memory, uint64_t offset,
                                uint64_t bytes, gm_error *err);

/* May the host write the range itself? Not part of an atom of memory that is not coherent: the flush would carry the
 * rest of the atom along, which may be older than what the device wrote there. */
bool gm__vulkan_whole_atoms(const gm__vulkan_memory *memory, uint64_t offset, uint64_t bytes);

/* Make a lazy driver take the pages of a range now. Contents stay. Nothing to do where the host cannot reach it: only
 * drivers that run on the CPU are lazy. */
gm_status gm__vulkan_touch(gm__vulkan_device *device, gm__vulkan_memory *memory, uint64_t offset, uint64_t bytes,
                           gm_error *err);

/* The seam's entries of groups 10 and 11. */
gm_status gm__vulkan_op_map(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                            uint32_t mode, void **out, gm_error *err);
gm_status gm__vulkan_op_unmap(void *device, void *stream, const gm_memory *memory, void *pointer, gm_error *err);
gm_status gm__vulkan_op_flush(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, gm_error *err);
gm_status gm__vulkan_op_invalidate(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                   gm_error *err);
gm_status gm__vulkan_op_commit(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                               gm_error *err);

#endif
