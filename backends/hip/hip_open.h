/* Makes and closes devices. */
#ifndef GM_BACKENDS_HIP_OPEN_H
#define GM_BACKENDS_HIP_OPEN_H

#include "backends/shared/runtime/runtime.h"

/* Entries of the seam. */
gm_status gm__hip_device_open(void *driver, uint32_t index, void **out_device, gm_error *err);
gm_status gm__hip_device_adopt(void *driver, const gm_native_device *native, void **out_device, gm_error *err);

/* device_init and device_clear of HIP's table. */
void gm__hip_device_init(gm__runtime_device *device);
void gm__hip_device_clear(gm__runtime_device *device);

#endif
