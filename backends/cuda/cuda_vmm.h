/* Virtual memory: address ranges and what is behind them. The entries of the seam, group 16, for memory of the device;
 * NOT_SUPPORTED for other types and on devices without GM_CAP_VMM. */
#ifndef GM_BACKENDS_CUDA_VMM_H
#define GM_BACKENDS_CUDA_VMM_H

#include "backends/cuda/cuda_device.h"

gm_status gm__cuda_vmm_granularity(void *device, const gm_vmm_props *props, uint64_t *out, gm_error *err);
gm_status gm__cuda_vmm_reserve(void *device, uint64_t bytes, uint64_t align, uint64_t *out_address, gm_error *err);
gm_status gm__cuda_vmm_unreserve(void *device, uint64_t address, uint64_t bytes, gm_close_mode mode, gm_error *err);
gm_status gm__cuda_vmm_create(void *device, const gm_vmm_props *props, uint64_t bytes, uint64_t *out_handle,
                              gm_error *err);
gm_status gm__cuda_vmm_destroy(void *device, uint64_t handle, uint64_t bytes, gm_close_mode mode, gm_error *err);
gm_status gm__cuda_vmm_map(void *device, uint64_t address, uint64_t bytes, uint64_t handle, uint64_t offset,
                           gm_error *err);
gm_status gm__cuda_vmm_unmap(void *device, uint64_t address, uint64_t bytes, gm_error *err);
gm_status gm__cuda_vmm_access(void *device, uint64_t address, uint64_t bytes, gm_error *err);

#endif
