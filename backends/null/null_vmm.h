/* Virtual memory of the null backend: ranges of addresses, pieces of the capacity, and which piece is mapped where.
 * Misuse (a range that is not reserved, or mapped twice) is GM_ERR_INVALID_ARGUMENT. Entry 16. Thread-safe. */
#ifndef GM_BACKENDS_NULL_NULL_VMM_H
#define GM_BACKENDS_NULL_NULL_VMM_H

#include "backends/null/null_device.h"

void gm__null_vmm_init(gm__null_device *device);
void gm__null_vmm_clear(gm__null_device *device); /* host memory of the tables */

gm_status gm__null_vmm_granularity(void *device, const gm_vmm_props *props, uint64_t *out, gm_error *err);
gm_status gm__null_vmm_reserve(void *device, uint64_t bytes, uint64_t align, uint64_t *out_address, gm_error *err);

/* GM_ERR_BUSY while something is mapped there. */
gm_status gm__null_vmm_unreserve(void *device, uint64_t address, uint64_t bytes, gm_close_mode mode, gm_error *err);
gm_status gm__null_vmm_create(void *device, const gm_vmm_props *props, uint64_t bytes, uint64_t *out_handle,
                              gm_error *err);

/* The capacity comes back when the last mapping of it is gone too, as with CUDA. */
gm_status gm__null_vmm_destroy(void *device, uint64_t handle, uint64_t bytes, gm_close_mode mode, gm_error *err);
gm_status gm__null_vmm_map(void *device, uint64_t address, uint64_t bytes, uint64_t handle, uint64_t offset,
                           gm_error *err);
gm_status gm__null_vmm_unmap(void *device, uint64_t address, uint64_t bytes, gm_error *err);
gm_status gm__null_vmm_access(void *device, uint64_t address, uint64_t bytes, gm_error *err);

#endif
