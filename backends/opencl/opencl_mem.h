/* Memory: cl_mem buffers without addresses, or memory at an address (opencl_pointer.h); counted against the device's
 * size because no driver does. */
#ifndef GM_BACKENDS_OPENCL_MEM_H
#define GM_BACKENDS_OPENCL_MEM_H

#include "backends/opencl/opencl_device.h"
#include "gm/native_opencl.h"

/* What gm_memory.handle points to. Immutable but for `viewed`. */
typedef struct gm__opencl_memory {
  gm__opencl_kind kind;
  cl_mem buffer;   /* the parent, never a sub-buffer; NULL: unified shared memory, which has an address alone */
  cl_mem retained; /* what we hold a reference on: `buffer`, or the engine's sub-buffer of it */
  uint64_t origin; /* of the memory's first byte in `buffer` */
  uint64_t counted;
  uint64_t whole;      /* bytes of `buffer` */
  uintptr_t pointer;   /* the address of the first byte; 0: it has none */
  void *base;          /* what the driver gave and gets back; NULL: nothing, it is a buffer or the engine's */
  _Atomic bool viewed; /* the engine uses sub-buffers of `buffer`, or did: commands name some, too (opencl_part.h) */
} gm__opencl_memory;

static inline const gm__opencl_memory *gm__opencl_memory_of(const gm_memory *memory) {
  return (const gm__opencl_memory *)(uintptr_t)memory->handle;
}

/* INVALID_ARGUMENT when the native range reaches past `have` bytes; else its bytes, all that follow for 0. */
gm_status gm__opencl_wrap_range(const gm_opencl_memory *native, size_t have, uint64_t *out_bytes, gm_error *err);

/* The entries of the seam, groups 7 to 9, and memory_wrap. */
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
