/* What a device is and can do, and what HIP says about its memory. Asking changes nothing in the calling thread. */
#ifndef GM_BACKENDS_HIP_INFO_H
#define GM_BACKENDS_HIP_INFO_H

#include "backends/hip/hip_driver.h"

/* Everything about the device with this ordinal. A question without an answer leaves its field at "not known"; fails
 * when HIP cannot give the device's name. */
gm_status gm__hip_describe(const gm__hip_driver *driver, uint32_t ordinal, gm_device_info *out, gm_error *err);

/* Bits 1 << gm_share_kind of how memory of the device can leave, with the capabilities that `info` says it has. */
uint32_t gm__hip_share_kinds(const gm__hip_driver *driver, const gm_device_info *info);

/* Raw figures of a device that is not open: the total. The caller adds hipMemGetInfo, the core sysfs. */
void gm__hip_figures(const gm__hip_driver *driver, const gm_device_info *info, gm_raw_figures *out);

#endif
