/* Describes a device, and reads what HIP says about its memory. Asking changes nothing in the calling thread. */
#ifndef GM_BACKENDS_HIP_INFO_H
#define GM_BACKENDS_HIP_INFO_H

#include "backends/hip/hip_driver.h"

/* Describe the device with this ordinal. A question without an answer leaves its field at "not known". Fails when HIP
 * cannot give the device's name. */
gm_status gm__hip_describe(const gm__runtime_driver *base, uint32_t ordinal, gm_device_info *out, gm_error *err);

/* The ways in which memory of the device can leave, as bits 1 << gm_share_kind. `info` says which capabilities the
 * device has. */
uint32_t gm__hip_share_kinds(const gm__runtime_driver *base, int ordinal, const gm_device_info *info);

/* Raw figures of a device that is not open: the total. The caller adds hipMemGetInfo; the core adds sysfs. */
void gm__hip_figures(const gm__runtime_driver *base, const gm_device_info *info, gm_raw_figures *out);

#endif
