/* Copies of the null backend: the range is checked, time passes, nothing is moved. Entry 14. Thread-safe. */
#ifndef GM_BACKENDS_NULL_NULL_COPY_H
#define GM_BACKENDS_NULL_NULL_COPY_H

#include "gm/backend.h"

gm_status gm__null_copy_to_device(void *device, void *stream, const gm_memory *dst, uint64_t offset, const void *src,
                                  uint64_t bytes, gm_backend_point *out, gm_error *err);

/* Always GM_ERR_NOT_SUPPORTED: contents are not kept, and inventing some would be worse than saying so. */
gm_status gm__null_copy_to_host(void *device, void *stream, const gm_memory *src, uint64_t offset, void *dst,
                                uint64_t bytes, gm_backend_point *out, gm_error *err);
gm_status gm__null_copy(void *device, void *stream, const gm_copy_item *item, gm_backend_point *out, gm_error *err);
gm_status gm__null_fill(void *device, void *stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                        const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err);
gm_status gm__null_copy_many(void *device, void *stream, const gm_copy_item *items, uint32_t count,
                             gm_backend_point *out, gm_error *err);

#endif
