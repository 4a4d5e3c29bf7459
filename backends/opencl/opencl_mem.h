/* The record of memory: a cl_mem buffer without an address, or memory at an address (opencl_pointer.h). */
#ifndef GM_BACKENDS_OPENCL_MEM_H
#define GM_BACKENDS_OPENCL_MEM_H

#include "backends/opencl/opencl_device.h"
#include "gm/native_opencl.h"

/* gm_memory.handle points to it. Immutable but for `viewed`. */
typedef struct gm__opencl_memory {
  gm__opencl_kind kind;
  cl_mem buffer;       /* the parent, never a sub-buffer; NULL: unified shared memory, which has only an address */
  cl_mem retained;     /* gm holds a reference on it: `buffer`, or the engine's sub-buffer of it */
  uint64_t origin;     /* the offset of the memory's first byte in `buffer` */
  uint64_t counted;    /* bytes that count against the device's size */
  uint64_t whole;      /* bytes of `buffer` */
  uintptr_t pointer;   /* the first byte's address for kernels, which then take no buffer; 0: none */
  uintptr_t host;      /* the first byte's address for the host, good without a mapping; 0: none */
  void *base;          /* the driver's pointer, to be given back; NULL: a buffer, or the engine's memory */
  _Atomic bool viewed; /* the engine has used sub-buffers of `buffer`, so commands must use them too (opencl_part.h) */
} gm__opencl_memory;

static inline const gm__opencl_memory *gm__opencl_memory_of(const gm_memory *memory) {
  return (const gm__opencl_memory *)(uintptr_t)memory->handle;
}

/* Check the range of `native` in a memory of `have` bytes. *out_bytes are its bytes; a native range of 0 bytes means
 * all that follow its offset. INVALID_ARGUMENT when the range reaches past `have`. */
gm_status gm__opencl_wrap_range(const gm_opencl_memory *native, size_t have, uint64_t *out_bytes, gm_error *err);

#endif
