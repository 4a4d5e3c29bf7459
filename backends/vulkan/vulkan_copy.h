/* The common steps of copies and fills. The host reaches host-visible memory itself, once the stream's earlier work is
 * done. The bytes of other memory go through staging. Every submission begins and ends with a barrier
 * (vulkan_command.h). */
#ifndef GM_BACKENDS_VULKAN_COPY_H
#define GM_BACKENDS_VULKAN_COPY_H

#include "backends/vulkan/vulkan_mem.h"
#include "backends/vulkan/vulkan_stream.h"

/* Every entry asks first: is the device lost, and may gm submit? */
gm_status gm__vulkan_copy_check(const gm__vulkan_stream *stream, const char *op, gm_error *err);

/* End a call that has come to `status`, after it submitted work up to `point`. A success hands the point out, or waits
 * for it where `out` is NULL. A failure waits for it: the caller may free the memory on this answer. */
gm_status gm__vulkan_copy_finish(gm__vulkan_device *device, gm_status status, const gm_backend_point *point,
                                 gm_backend_point *out, gm_error *err);

/* Is access by the host better than by the device? Only where the host's caches cover the memory. */
bool gm__vulkan_copy_by_host(const gm__vulkan_memory *memory);

#endif
