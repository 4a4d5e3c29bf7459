/* Host mapping: a command of a queue in OpenCL, so order is the queue's. The entries of the seam, group 10. */
#ifndef GM_BACKENDS_OPENCL_MAP_H
#define GM_BACKENDS_OPENCL_MAP_H

#include "backends/opencl/opencl_device.h"

gm_status gm__opencl_map(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                         uint32_t mode, void **out, gm_error *err);
gm_status gm__opencl_unmap(void *device, void *stream, const gm_memory *memory, void *pointer, gm_error *err);

/* Nothing to do: mapping and unmapping already make both sides agree. */
gm_status gm__opencl_map_sync(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, gm_error *err);

#endif
