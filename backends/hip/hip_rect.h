/* Boxes: the entries of the seam, group 14. */
#ifndef GM_BACKENDS_HIP_RECT_H
#define GM_BACKENDS_HIP_RECT_H

#include "backends/hip/hip_stream.h"

gm_status gm__hip_rect_to_device(void *device, void *stream, const gm_memory *dst, const void *src, const gm_rect *rect,
                                 gm_backend_point *out, gm_error *err);
gm_status gm__hip_rect_to_host(void *device, void *stream, const gm_memory *src, void *dst, const gm_rect *rect,
                               gm_backend_point *out, gm_error *err);
gm_status gm__hip_rect_copy(void *device, void *stream, const gm_memory *dst, const gm_memory *src, const gm_rect *rect,
                            gm_backend_point *out, gm_error *err);

#endif
