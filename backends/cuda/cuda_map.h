/* Host mapping: page-locked and managed memory has a host address all the time, the device's memory has none. The
 * entries of the seam, group 10. */
#ifndef GM_BACKENDS_CUDA_MAP_H
#define GM_BACKENDS_CUDA_MAP_H

#include "backends/cuda/cuda_stream.h"

gm_status gm__cuda_map(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                       uint32_t mode, void **out, gm_error *err);
gm_status gm__cuda_unmap(void *device, void *stream, const gm_memory *memory, void *pointer, gm_error *err);

/* flush and invalidate: nothing, all that can be mapped is coherent. */
gm_status gm__cuda_map_sync(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, gm_error *err);

#endif
