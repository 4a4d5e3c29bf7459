/* Describes a device, and reads what the driver says about its memory. Asking makes no context. */
#ifndef GM_BACKENDS_CUDA_INFO_H
#define GM_BACKENDS_CUDA_INFO_H

#include "backends/cuda/cuda_driver.h"

/* Describe the device with this ordinal. A question without an answer leaves its field at "not known". Fails when the
 * driver cannot give the device or its name. */
gm_status gm__cuda_describe(const gm__runtime_driver *base, uint32_t ordinal, gm_device_info *out, gm_error *err);

/* An attribute; `otherwise` where the driver has no answer. */
int gm__cuda_attribute(const gm__cuda_driver *driver, CUdevice device, CUdevice_attribute what, int otherwise);

/* The ways in which memory of the device can leave, as bits 1 << gm_share_kind. `info` says which capabilities the
 * device has. */
uint32_t gm__cuda_share_kinds(const gm__runtime_driver *driver, int ordinal, const gm_device_info *info);

/* Raw figures without a context: the total, and what NVML tells. The caller adds cuMemGetInfo. */
void gm__cuda_figures(const gm__runtime_driver *base, const gm_device_info *info, gm_raw_figures *out);

#endif
