/* gm's own kernels on one device: compiled by hiprtc and loaded when one is first wanted. Nothing needs them: whoever
 * asks must be able to go without. Thread-safe. */
#ifndef GM_BACKENDS_HIP_PROGRAM_H
#define GM_BACKENDS_HIP_PROGRAM_H

#include "backends/hip/hip_current.h"

/* The kernel that fills, in a form that hipModuleLaunchKernel takes; the device is current. The first caller compiles,
 * which takes up to seconds. NULL: there is none, now (another thread is compiling, the engine captures a stream that
 * it lent: nothing is compiled or loaded during that) or ever (no hiprtc, it failed, the runtime cannot load what it
 * made). Why ever not is said in the log, once. */
hipFunction_t gm__hip_program_fill(gm__hip_device *device);

/* From now on there is no kernel, because `why`. */
void gm__hip_program_refuse(gm__hip_device *device, const gm_error *why);

/* At closing: gm's own streams have ended, the engine's were waited for when they were closed (gm_stream_close), so no
 * kernel runs any more. The device is current. */
void gm__hip_program_unload(gm__hip_device *device);

#endif
