/* Between processes. The entries of the seam, group 18. */
#ifndef GM_BACKENDS_HIP_SHARE_H
#define GM_BACKENDS_HIP_SHARE_H

#include "backends/hip/hip_device.h"

gm_status gm__hip_share_export(void *device, const gm_memory *memory, gm_share_kind kind, gm_shared *out,
                               gm_error *err);
gm_status gm__hip_share_import(void *device, const gm_shared *shared, gm_memory *out, gm_error *err);
gm_status gm__hip_share_close(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err);
gm_status gm__hip_share_export_vmm(void *device, uint64_t handle, uint64_t bytes, gm_shared *out, gm_error *err);
gm_status gm__hip_share_import_vmm(void *device, const gm_shared *shared, uint64_t *out_handle, gm_error *err);

#endif
