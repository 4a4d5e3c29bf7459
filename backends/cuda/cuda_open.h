/* Makes and closes devices: retains and releases a primary context, or adopts an engine's context. */
#ifndef GM_BACKENDS_CUDA_OPEN_H
#define GM_BACKENDS_CUDA_OPEN_H

#include "backends/shared/runtime/runtime.h"

/* Entries of the seam. */
gm_status gm__cuda_device_open(void *driver, uint32_t index, void **out_device, gm_error *err);
gm_status gm__cuda_device_adopt(void *driver, const gm_native_device *native, void **out_device, gm_error *err);

/* device_drop of CUDA's table. */
void gm__cuda_device_drop(gm__runtime_device *device);

#endif
