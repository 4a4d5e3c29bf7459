/* CUDA objects that an engine lends to gm, or asks gm for. gm destroys none of them. The engine destroys its own after
 * it has closed gm's objects on them. docs/backends/cuda.md has the rules for default streams and captures. */
#ifndef GM_NATIVE_CUDA_H
#define GM_NATIVE_CUDA_H

#include "gm/native.h"

GM_BEGIN_DECLS

typedef struct gm_cuda_device {
  gm_native_device head; /* {sizeof(gm_cuda_device), GM_API_CUDA} */
  int32_t ordinal;       /* CUdevice; gm reads it only where `context` is 0, and sets it on output */
  uintptr_t context;     /* CUcontext; 0: the primary context of `ordinal`, which gm retains */
} gm_cuda_device;

typedef struct gm_cuda_stream {
  gm_native_stream head; /* {sizeof(gm_cuda_stream), GM_API_CUDA} */
  uintptr_t stream;      /* CUstream; 0 and 1 (CU_STREAM_LEGACY): the legacy default stream; 2
                            (CU_STREAM_PER_THREAD): the calling thread's, for use in this thread only (NOT_SUPPORTED
                            before CUDA 12) */
} gm_cuda_stream;

typedef struct gm_cuda_point {
  gm_native_point head; /* {sizeof(gm_cuda_point), GM_API_CUDA} */
  uintptr_t event;      /* CUevent, recorded; until the point has passed the engine neither destroys nor records it
                           again */
} gm_cuda_point;

typedef struct gm_cuda_memory {
  gm_native_memory head; /* {sizeof(gm_cuda_memory), GM_API_CUDA} */
  uint64_t pointer;      /* CUdeviceptr of the block */
  uint64_t bytes;        /* of the block; bytes behind it belong to others */
} gm_cuda_memory;

GM_END_DECLS

#endif
