/* HIP objects that an engine lends to gm, or asks gm for. gm destroys none of them. */
#ifndef GM_NATIVE_HIP_H
#define GM_NATIVE_HIP_H

#include "gm/native.h"

GM_BEGIN_DECLS

typedef struct gm_hip_device {
  gm_native_device head; /* {sizeof(gm_hip_device), GM_API_HIP} */
  int32_t ordinal;       /* hipDevice_t */
  uintptr_t context;     /* 0: HIP has one context for each device, that of `ordinal` */
} gm_hip_device;

typedef struct gm_hip_stream {
  gm_native_stream head; /* {sizeof(gm_hip_stream), GM_API_HIP} */
  uintptr_t stream;      /* hipStream_t; 0: null stream; 1: hipStreamLegacy; gm refuses 2, hipStreamPerThread */
} gm_hip_stream;

typedef struct gm_hip_point {
  gm_native_point head; /* {sizeof(gm_hip_point), GM_API_HIP} */
  uintptr_t event;      /* hipEvent_t, recorded */
} gm_hip_point;

typedef struct gm_hip_memory {
  gm_native_memory head; /* {sizeof(gm_hip_memory), GM_API_HIP} */
  uint64_t pointer;      /* hipDeviceptr_t of the block, as a number */
  uint64_t bytes;        /* of the block; bytes behind it belong to others */
} gm_hip_memory;

GM_END_DECLS

#endif
