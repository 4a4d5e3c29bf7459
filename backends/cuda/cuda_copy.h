/* Copies and fills: work on a stream. The entries of the seam, group 14 but the boxes. */
#ifndef GM_BACKENDS_CUDA_COPY_H
#define GM_BACKENDS_CUDA_COPY_H

#include "backends/cuda/cuda_stream.h"

gm_status gm__cuda_copy_to_device(void *device, void *stream, const gm_memory *dst, uint64_t offset, const void *src,
                                  uint64_t bytes, gm_backend_point *out, gm_error *err);
gm_status gm__cuda_copy_to_host(void *device, void *stream, const gm_memory *src, uint64_t offset, void *dst,
                                uint64_t bytes, gm_backend_point *out, gm_error *err);
gm_status gm__cuda_copy(void *device, void *stream, const gm_copy_item *item, gm_backend_point *out, gm_error *err);
gm_status gm__cuda_copy_many(void *device, void *stream, const gm_copy_item *items, uint32_t count,
                             gm_backend_point *out, gm_error *err);
gm_status gm__cuda_fill(void *device, void *stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                        const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err);

/* Between two places of memory, either of which may be page-locked host memory; nothing for 0 bytes. */
CUresult gm__cuda_copy_enqueue(const gm__cuda_device *device, CUstream stream, const gm_copy_item *item);

#endif
