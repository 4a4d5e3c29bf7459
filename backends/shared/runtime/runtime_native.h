/* The native structs of CUDA and HIP (gm/native_cuda.h, gm/native_hip.h) have the same members in the same places. Each
 * backend asserts that. */
#ifndef GM_BACKENDS_SHARED_RUNTIME_RUNTIME_NATIVE_H
#define GM_BACKENDS_SHARED_RUNTIME_RUNTIME_NATIVE_H

#include "gm/native.h"

typedef struct gm__runtime_native_device {
  gm_native_device head;
  int32_t ordinal;
  uintptr_t context;
} gm__runtime_native_device;

typedef struct gm__runtime_native_stream {
  gm_native_stream head;
  uintptr_t stream;
} gm__runtime_native_stream;

typedef struct gm__runtime_native_point {
  gm_native_point head;
  uintptr_t event;
} gm__runtime_native_point;

typedef struct gm__runtime_native_memory {
  gm_native_memory head;
  uint64_t pointer;
  uint64_t bytes;
} gm__runtime_native_memory;

#endif
