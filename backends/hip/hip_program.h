/* gm's own kernels on one device. hiprtc compiles them when somebody first wants one. Every caller must be able to go
 * without. Thread-safe. */
#ifndef GM_BACKENDS_HIP_PROGRAM_H
#define GM_BACKENDS_HIP_PROGRAM_H

#include "backends/hip/hip_device.h"

/* The kernel that fills, for hipModuleLaunchKernel. The device is entered. The first caller compiles it, which takes up
 * to seconds. NULL for now: another thread compiles, or the engine captures a stream that it lent. NULL for ever: there
 * is no hiprtc, it failed, or the runtime cannot load its code. The log says why, once. */
hipFunction_t gm__hip_program_fill(gm__hip_device *device);

/* From now on there is no kernel, because `why`. */
void gm__hip_program_refuse(gm__hip_device *device, const gm_error *why);

/* device_unload of HIP's table. No kernel runs any more at closing: gm's own streams have ended, and gm_stream_close
 * waited for the engine's. */
void gm__hip_program_unload(gm__runtime_device *device);

#endif
