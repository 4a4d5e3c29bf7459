/* Host registration: the caller's memory, page-locked in place. The entries of the seam, group 15. */
#ifndef GM_BACKENDS_HIP_HOST_H
#define GM_BACKENDS_HIP_HOST_H

#include "backends/hip/hip_device.h"

gm_status gm__hip_host_register(void *device, void *pointer, uint64_t bytes, gm_error *err);
gm_status gm__hip_host_unregister(void *device, void *pointer, gm_close_mode mode, gm_error *err);

#endif
