/* Host memory of the driver's, for staging: a buffer with CL_MEM_ALLOC_HOST_PTR, mapped for life. No kernel takes it.
 * Thread-safe. */
#ifndef GM_BACKENDS_OPENCL_HOST_H
#define GM_BACKENDS_OPENCL_HOST_H

#include "backends/opencl/opencl_device.h"

/* Frees the records that are left: in a forked child, or where the driver did not let go. */
void gm__opencl_host_forget(gm__opencl_device *device);

#endif
