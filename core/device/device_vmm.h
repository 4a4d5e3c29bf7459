/* Physical memory of a device, apart from addresses, counted like allocations are. Thread-safe. */
#ifndef GM_CORE_DEVICE_DEVICE_VMM_H
#define GM_CORE_DEVICE_DEVICE_VMM_H

#include "core/device/device.h"

/* The backend's answers; DRIVER when it said success without a handle. */
gm_status gm__device_create_physical(gm_device *device, uint32_t type, uint64_t bytes, uint64_t *out_handle,
                                     gm_error *err);
/* In a forked child host memory only. */
void gm__device_destroy_physical(gm_device *device, uint64_t handle, uint64_t bytes);

#endif
