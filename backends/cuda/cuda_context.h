/* Makes the device's context current in the calling thread for one call, and then puts the thread's own back. */
#ifndef GM_BACKENDS_CUDA_CONTEXT_H
#define GM_BACKENDS_CUDA_CONTEXT_H

#include "backends/cuda/cuda_device.h"

/* `enter` and `leave` of CUDA's table. Enter also relaxes the thread's capture mode. Otherwise cuMemAlloc or
 * cuEventQuery would invalidate a stream capture of the engine. */
gm_status gm__cuda_enter(gm__runtime_device *device, gm__runtime_scope *out, gm_error *err);
void gm__cuda_leave(const gm__runtime_device *device, const gm__runtime_scope *scope);

#endif
