/* CUDA objects that an engine lends to gm or asks gm for. The CUDA backend comes with a later version; the layout is
 * fixed here so that engines can be written against it. */
#ifndef GM_NATIVE_CUDA_H
#define GM_NATIVE_CUDA_H

#include "gm/native.h"

GM_BEGIN_DECLS

typedef struct gm_cuda_device {
  gm_native_device head; /* {sizeof(gm_cuda_device), GM_API_CUDA} */
  uintptr_t context;     /* CUcontext; 0: the primary context of `ordinal`, retained */
  int32_t ordinal;       /* CUdevice */
} gm_cuda_device;

typedef struct gm_cuda_stream {
  gm_native_stream head; /* {sizeof(gm_cuda_stream), GM_API_CUDA} */
  uintptr_t stream;      /* CUstream; 0 legacy default, 1 CU_STREAM_LEGACY, 2 CU_STREAM_PER_THREAD */
} gm_cuda_stream;

typedef struct gm_cuda_point {
  gm_native_point head; /* {sizeof(gm_cuda_point), GM_API_CUDA} */
  uintptr_t event;      /* CUevent, recorded */
} gm_cuda_point;

typedef struct gm_cuda_memory {
  gm_native_memory head; /* {sizeof(gm_cuda_memory), GM_API_CUDA} */
  uint64_t pointer;      /* CUdeviceptr of the block */
  uint64_t bytes;
} gm_cuda_memory;

GM_END_DECLS

#endif
