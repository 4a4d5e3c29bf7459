/* Copies and fills: work on a stream. The entries of the seam, group 14 but the boxes. */
#ifndef GM_BACKENDS_HIP_COPY_H
#define GM_BACKENDS_HIP_COPY_H

#include "backends/hip/hip_stream.h"

gm_status gm__hip_copy_to_device(void *device, void *stream, const gm_memory *dst, uint64_t offset, const void *src,
                                 uint64_t bytes, gm_backend_point *out, gm_error *err);
gm_status gm__hip_copy_to_host(void *device, void *stream, const gm_memory *src, uint64_t offset, void *dst,
                               uint64_t bytes, gm_backend_point *out, gm_error *err);
gm_status gm__hip_copy(void *device, void *stream, const gm_copy_item *item, gm_backend_point *out, gm_error *err);
gm_status gm__hip_copy_many(void *device, void *stream, const gm_copy_item *items, uint32_t count,
                            gm_backend_point *out, gm_error *err);
gm_status gm__hip_fill(void *device, void *stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                       const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err);

/* One copy, submitted; 0 bytes: none. The device is current. */
hipError_t gm__hip_copy_enqueue(const gm__hip_device *device, hipStream_t stream, uint64_t to, uint64_t from,
                                uint64_t bytes, hipMemcpyKind kind);

/* How hipMemcpy is told where the bytes are, by whether the host reaches either side. */
hipMemcpyKind gm__hip_copy_kind(bool from_host, bool to_host);

#endif
