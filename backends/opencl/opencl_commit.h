/* Really taking memory that the driver has only promised. */
#ifndef GM_BACKENDS_OPENCL_COMMIT_H
#define GM_BACKENDS_OPENCL_COMMIT_H

#include "backends/opencl/opencl_device.h"

/* The entry of the seam, group 11; `stream` NULL: gm's own queue. Returns when the bytes are there. */
gm_status gm__opencl_commit(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                            gm_error *err);

#endif
