/* The device's context made current in the calling thread for the length of one call, and what was current put back. */
#ifndef GM_BACKENDS_CUDA_CONTEXT_H
#define GM_BACKENDS_CUDA_CONTEXT_H

#include "backends/cuda/cuda_device.h"

typedef struct gm__cuda_scope {
  const gm__cuda_syms *cu;
  CUcontext before; /* what was current */
  bool pushed, set; /* how gm's came there; neither: it was current */
  bool exchanged;
  CUstreamCaptureMode mode; /* the thread's own */
} gm__cuda_scope;

/* Also makes the thread's calls harmless to stream captures of the engine (cuMemAlloc or cuEventQuery would else
 * invalidate one). DEVICE_LOST without asking the driver where that is known. On failure nothing is to be left. */
gm_status gm__cuda_enter(gm__cuda_device *device, gm__cuda_scope *out, gm_error *err);

/* The same for giving back: GM_OK is the only answer on a lost device, with *out_gone true and nothing entered. */
gm_status gm__cuda_enter_release(gm__cuda_device *device, gm__cuda_scope *out, bool *out_gone, gm_error *err);

void gm__cuda_leave(const gm__cuda_scope *scope);

#endif
