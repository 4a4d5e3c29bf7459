/* The bytes of a CPU block. */
#ifndef GM_BACKENDS_CPU_CPU_MEM_H
#define GM_BACKENDS_CPU_CPU_MEM_H

#include "gm/backend.h"

/* The first byte of `memory`. A range of virtual memory has an address too, and perhaps no `host`. */
static inline unsigned char *gm__cpu_bytes(const gm_memory *memory) {
  return (unsigned char *)(uintptr_t)memory->address;
}

#endif
