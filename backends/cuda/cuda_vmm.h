/* Virtual memory: VA ranges, and what is mapped in them. These are entries of the seam, group 16. */
#ifndef GM_BACKENDS_CUDA_VMM_H
#define GM_BACKENDS_CUDA_VMM_H

#include "backends/shared/runtime/runtime.h"

gm_status gm__cuda_vmm_reserve(void *device, uint64_t bytes, uint64_t align, uint64_t *out_address, gm_error *err);
gm_status gm__cuda_vmm_unreserve(void *device, uint64_t address, uint64_t bytes, gm_close_mode mode, gm_error *err);
gm_status gm__cuda_vmm_map(void *device, uint64_t address, uint64_t bytes, uint64_t handle, uint64_t offset,
                           gm_error *err);
gm_status gm__cuda_vmm_unmap(void *device, uint64_t address, uint64_t bytes, gm_error *err);

/* vmm_open of CUDA's table. */
gm_status gm__cuda_vmm_open(gm__runtime_device *device, int ordinal, uint64_t address, uint64_t bytes, gm_error *err);

#endif
