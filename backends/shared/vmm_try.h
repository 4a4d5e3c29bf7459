/* Tries the virtual memory that a device claims: drivers have been seen to advertise what then fails. */
#ifndef GM_BACKENDS_SHARED_VMM_TRY_H
#define GM_BACKENDS_SHARED_VMM_TRY_H

#include "gm/backend.h"

/* If `info` has GM_CAP_VMM, reserve, create, map, open and unmap memory of type 0 through the backend's own entries.
 * Clear the capability if that fails, unless the device is full. Leaves nothing behind. */
void gm__vmm_try(const gm_backend_ops *ops, void *device, gm_device_info *info);

#endif
