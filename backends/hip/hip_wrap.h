/* The engine's memory as gm's: memory_wrap. Nothing is retained, HIP counts no references. */
#ifndef GM_BACKENDS_HIP_WRAP_H
#define GM_BACKENDS_HIP_WRAP_H

#include "backends/hip/hip_device.h"

gm_status gm__hip_memory_wrap(void *device, const gm_native_memory *native, gm_memory *out, gm_error *err);

#endif
