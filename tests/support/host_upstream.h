/* An upstream of pools on the CPU backend: the C library's memory. */
#ifndef GM_TESTS_SUPPORT_HOST_UPSTREAM_H
#define GM_TESTS_SUPPORT_HOST_UPSTREAM_H

#include <stdlib.h>

#include "gm/native_cpu.h"
#include "gm/pool.h"

static inline gm_status host_upstream_allocate(void *user, uint64_t bytes, uint32_t align, gm_native_memory *out,
                                               void **out_token) {
  gm_cpu_memory *memory = (gm_cpu_memory *)out;
  (void)user;
  memory->pointer = aligned_alloc(align, (bytes + align - 1) / align * align);
  memory->bytes = bytes;
  *out_token = memory->pointer;
  return memory->pointer ? GM_OK : GM_ERR_OUT_OF_DEVICE_MEMORY;
}

static inline void host_upstream_release(void *user, void *token) {
  (void)user;
  free(token);
}

static const gm_upstream host_upstream = {.allocate = host_upstream_allocate, .release = host_upstream_release};

#endif
