/* Native objects of the CPU backend, where a block is a pointer. */
#ifndef GM_NATIVE_CPU_H
#define GM_NATIVE_CPU_H

#include "gm/native.h"

GM_BEGIN_DECLS

typedef struct gm_cpu_memory {
  gm_native_memory head; /* {sizeof(gm_cpu_memory), GM_API_CPU} */
  void *pointer;         /* the first byte */
  uint64_t bytes;        /* in, to wrap: bytes from `pointer`; out: usable bytes from `pointer` */
} gm_cpu_memory;

GM_END_DECLS

#endif
