/* Copies and fills of the CPU backend. Entry 14. `stream` NULL: at once, in the calling thread. */
#ifndef GM_BACKENDS_CPU_CPU_COPY_H
#define GM_BACKENDS_CPU_CPU_COPY_H

#include "gm/backend.h"

gm_status gm__cpu_copy_to_device(void *device, void *stream, const gm_memory *dst, uint64_t offset, const void *src,
                                 uint64_t bytes, gm_backend_point *out, gm_error *err);
gm_status gm__cpu_copy_to_host(void *device, void *stream, const gm_memory *src, uint64_t offset, void *dst,
                               uint64_t bytes, gm_backend_point *out, gm_error *err);
gm_status gm__cpu_copy(void *device, void *stream, const gm_copy_item *item, gm_backend_point *out, gm_error *err);
gm_status gm__cpu_fill(void *device, void *stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                       const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err);
gm_status gm__cpu_rect_to_device(void *device, void *stream, const gm_memory *dst, const void *src, const gm_rect *rect,
                                 gm_backend_point *out, gm_error *err);
gm_status gm__cpu_rect_to_host(void *device, void *stream, const gm_memory *src, void *dst, const gm_rect *rect,
                               gm_backend_point *out, gm_error *err);
gm_status gm__cpu_rect_copy(void *device, void *stream, const gm_memory *dst, const gm_memory *src, const gm_rect *rect,
                            gm_backend_point *out, gm_error *err);
gm_status gm__cpu_copy_many(void *device, void *stream, const gm_copy_item *items, uint32_t count,
                            gm_backend_point *out, gm_error *err);

#endif
