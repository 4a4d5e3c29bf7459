/* Memory: cl_mem buffers without addresses, counted against the device's size because no driver does. */
#ifndef GM_BACKENDS_OPENCL_MEM_H
#define GM_BACKENDS_OPENCL_MEM_H

#include "backends/opencl/opencl_device.h"

/* What gm_memory.handle points to. Immutable. */
typedef struct gm__opencl_memory {
  cl_mem buffer;   /* what commands name: never a sub-buffer */
  cl_mem retained; /* what we hold a reference on: `buffer`, or the engine's sub-buffer of it */
  uint64_t origin; /* of the memory's first byte in `buffer` */
  uint64_t counted;
} gm__opencl_memory;

static inline const gm__opencl_memory *gm__opencl_memory_of(const gm_memory *memory) {
  return (const gm__opencl_memory *)(uintptr_t)memory->handle;
}

/* The entries of the seam, groups 7 to 9 and 11, and memory_wrap. */
gm_status gm__opencl_memory_type_count(void *device, uint32_t *out, gm_error *err);
gm_status gm__opencl_memory_type(void *device, uint32_t type, gm_memory_type *out, gm_error *err);
gm_status gm__opencl_memory_alloc(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err);
gm_status gm__opencl_memory_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err);
gm_status gm__opencl_memory_native(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                   gm_native_memory *out, gm_error *err);
gm_status gm__opencl_memory_wrap(void *device, const gm_native_memory *native, gm_memory *out, gm_error *err);
gm_status gm__opencl_view_create(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, uint32_t usage,
                                 uint64_t *out_view, gm_error *err);
gm_status gm__opencl_view_destroy(void *device, uint64_t view, gm_close_mode mode, gm_error *err);

#endif
