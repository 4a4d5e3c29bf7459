/* Memory of the CPU backend: whole pages by mmap, huge ones where they help, taken on request. Entries 7, 8, 10, 11. */
#ifndef GM_BACKENDS_CPU_CPU_MEM_H
#define GM_BACKENDS_CPU_CPU_MEM_H

#include "gm/backend.h"

/* Where its bytes are: also of a range of virtual memory, which has an address and perhaps no `host`. */
static inline unsigned char *gm__cpu_bytes(const gm_memory *memory) {
  return (unsigned char *)(uintptr_t)memory->address;
}

gm_status gm__cpu_memory_type_count(void *device, uint32_t *out, gm_error *err);
gm_status gm__cpu_memory_type(void *device, uint32_t type, gm_memory_type *out, gm_error *err);

/* Zeroed pages. GM_ERR_ALLOCATION_TOO_LARGE beyond the address space, GM_ERR_OUT_OF_DEVICE_MEMORY when the system
 * refuses; with GM_ALLOC_COMMIT, and for memory to be shared, also when it cannot back the pages now. */
gm_status gm__cpu_memory_alloc(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err);
gm_status gm__cpu_memory_wrap(void *device, const gm_native_memory *native, gm_memory *out, gm_error *err);
gm_status gm__cpu_memory_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err);
gm_status gm__cpu_memory_native(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                gm_native_memory *out, gm_error *err);

/* A mapping is the memory itself, once the work of `stream` is done. */
gm_status gm__cpu_map(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                      uint32_t mode, void **out, gm_error *err);
gm_status gm__cpu_unmap(void *device, void *stream, const gm_memory *memory, void *pointer, gm_error *err);
gm_status gm__cpu_flush(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, gm_error *err);
gm_status gm__cpu_commit(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                         gm_error *err);

#endif
