/* Host memory that copies of a device reach directly: of the caller, registered, and of the driver. The public calls
 * are in gm/device.h. */
#ifndef GM_CORE_DEVICE_HOST_RANGE_H
#define GM_CORE_DEVICE_HOST_RANGE_H

#include "gm/device.h"

/* One registered range, in the device's list. The device stays open as long as there is one. */
typedef struct gm__host_range gm__host_range;

/* Are these bytes part of one range that the driver has? */
bool gm__host_range_has(gm_device *device, const void *at, uint64_t bytes);

/* Makes host memory of the driver's, at a page. To copies it is as if it were registered, and gm_host_unregister gives
 * it back. Answers: those of host_alloc (gm/backend.h); OUT_OF_HOST_MEMORY; DRIVER: an address that cannot be. */
gm_status gm__host_range_alloc(gm_device *device, uint64_t bytes, void **out, gm_error *err);

/* Forgets a range that the driver does not let go of. Nothing uses its memory any more. */
void gm__host_range_forget(gm_device *device, const void *pointer);

#endif
