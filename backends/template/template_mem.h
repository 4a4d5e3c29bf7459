/* Memory and copies. gm checks ranges before it calls these entries. It does not check the sizes of allocations. */
#ifndef TEMPLATE_MEM_H
#define TEMPLATE_MEM_H

#include "gm/backend.h"

gm_status template_memory_type_count(void *device, uint32_t *out, gm_error *err);
gm_status template_memory_type(void *device, uint32_t type, gm_memory_type *out, gm_error *err);
gm_status template_memory_alloc(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err);
gm_status template_memory_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err);
gm_status template_memory_native(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                 gm_native_memory *out, gm_error *err);
gm_status template_copy_to_device(void *device, void *stream, const gm_memory *dst, uint64_t offset, const void *src,
                                  uint64_t bytes, gm_backend_point *out, gm_error *err);
gm_status template_copy_to_host(void *device, void *stream, const gm_memory *src, uint64_t offset, void *dst,
                                uint64_t bytes, gm_backend_point *out, gm_error *err);
gm_status template_copy(void *device, void *stream, const gm_copy_item *item, gm_backend_point *out, gm_error *err);
gm_status template_fill(void *device, void *stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                        const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err);

#endif
