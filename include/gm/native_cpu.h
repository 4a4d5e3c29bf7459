/* The CPU backend's native objects: a block is a pointer. */
#ifndef GM_NATIVE_CPU_H
#define GM_NATIVE_CPU_H

#include "gm/native.h"

GM_BEGIN_DECLS

typedef struct gm_cpu_memory {
  gm_native_memory head; /* {sizeof(gm_cpu_memory), GM_API_CPU} */
  void *pointer;         /* first byte */
  uint64_t bytes;        /* in: for wrapping; out: usable from pointer */
} gm_cpu_memory;

GM_END_DECLS

#endif
