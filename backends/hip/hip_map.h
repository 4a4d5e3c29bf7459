/* Host mapping: page-locked and managed memory has a host address all the time, the device's memory has none. The
 * entries of the seam, group 10. */
#ifndef GM_BACKENDS_HIP_MAP_H
#define GM_BACKENDS_HIP_MAP_H

#include "backends/hip/hip_stream.h"

gm_status gm__hip_map(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                      uint32_t mode, void **out, gm_error *err);
gm_status gm__hip_unmap(void *device, void *stream, const gm_memory *memory, void *pointer, gm_error *err);

/* flush and invalidate: nothing, all that can be mapped is coherent. */
gm_status gm__hip_map_sync(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, gm_error *err);

#endif
