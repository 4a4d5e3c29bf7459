/* Copies and fills. Host-visible memory is reached by the host itself, once the stream's earlier work is done; other
 * memory through staging. Every submission begins and ends with a barrier (vulkan_command.h). */
#ifndef GM_BACKENDS_VULKAN_COPY_H
#define GM_BACKENDS_VULKAN_COPY_H

#include "backends/vulkan/vulkan_mem.h"
#include "backends/vulkan/vulkan_stream.h"

/* What every entry asks first: is the device lost, may gm submit? */
gm_status gm__vulkan_copy_check(const gm__vulkan_stream *stream, const char *op, gm_error *err);

/* Ends a call that submitted up to `point`: hand it out, or wait for it where `out` is NULL. */
gm_status gm__vulkan_copy_finish(gm__vulkan_device *device, const gm_backend_point *point, gm_backend_point *out,
                                 gm_error *err);

/* Ends a call that failed after it had submitted up to `point`: the memory may be given back on its answer. Returns
 * `status`. */
gm_status gm__vulkan_copy_abandon(gm__vulkan_device *device, const gm_backend_point *point, gm_status status);

/* Is it better that the host writes it than that the device does? Only where the host's caches are behind it. */
bool gm__vulkan_copy_by_host(const gm__vulkan_memory *memory);

/* The seam's entries of group 14. A read through staging has arrived when the call returns, with `out` too: its point
 * is already passed. */
gm_status gm__vulkan_op_copy_to_device(void *device, void *stream, const gm_memory *dst, uint64_t offset,
                                       const void *src, uint64_t bytes, gm_backend_point *out, gm_error *err);
gm_status gm__vulkan_op_copy_to_host(void *device, void *stream, const gm_memory *src, uint64_t offset, void *dst,
                                     uint64_t bytes, gm_backend_point *out, gm_error *err);
gm_status gm__vulkan_op_copy(void *device, void *stream, const gm_copy_item *item, gm_backend_point *out,
                             gm_error *err);
gm_status gm__vulkan_op_copy_many(void *device, void *stream, const gm_copy_item *items, uint32_t count,
                                  gm_backend_point *out, gm_error *err);
gm_status gm__vulkan_op_copy_record(void *device, uintptr_t native_command_buffer, const gm_copy_item *item,
                                    gm_error *err);
gm_status gm__vulkan_op_fill(void *device, void *stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                             const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err);

gm_status gm__vulkan_op_rect_to_device(void *device, void *stream, const gm_memory *dst, const void *src,
                                       const gm_rect *rect, gm_backend_point *out, gm_error *err);
gm_status gm__vulkan_op_rect_to_host(void *device, void *stream, const gm_memory *src, void *dst, const gm_rect *rect,
                                     gm_backend_point *out, gm_error *err);
gm_status gm__vulkan_op_rect_copy(void *device, void *stream, const gm_memory *dst, const gm_memory *src,
                                  const gm_rect *rect, gm_backend_point *out, gm_error *err);

#endif
