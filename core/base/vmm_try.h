/* Virtual memory that a device claims, tried once: drivers have been seen to advertise what then fails. */
#ifndef GM_CORE_BASE_VMM_TRY_H
#define GM_CORE_BASE_VMM_TRY_H

#include "gm/backend.h"

/* Where `info` has GM_CAP_VMM: reserve, create, map, open and unmap one piece of memory type 0 through the backend's
 * own entries, and clear the capability when that fails for another reason than a full device. Leaves nothing behind.
 */
void gm__vmm_try(const gm_backend_ops *ops, void *device, gm_device_info *info);

#endif
