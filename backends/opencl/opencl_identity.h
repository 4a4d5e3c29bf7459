/* The identity of a device: short words, PCI address, UUID. */
#ifndef GM_BACKENDS_OPENCL_IDENTITY_H
#define GM_BACKENDS_OPENCL_IDENTITY_H

#include "backends/opencl/opencl_driver.h"

/* Set info->vendor ("nvidia", "amd", "intel", "mesa", "pocl", …) and info->driver ("pocl", "rusticl", "rocm", "neo",
 * "nvidia", …). The platform's name, the vendor's number and the vendor's text tell them. An unknown name gives its
 * first word. */
void gm__opencl_words(const char *platform, uint32_t vendor_id, const char *vendor, gm_device_info *info);

/* Set info->uuid, luid and pci, as far as the driver has extensions for them. Fails only with OUT_OF_HOST_MEMORY. */
gm_status gm__opencl_identify(const gm__opencl_driver *driver, cl_device_id id, gm_device_info *info, gm_error *err);

/* Where the driver has told no UUID, make one from backend, driver, name and ordinal. It is the same in every process.
 */
void gm__opencl_derive_uuid(gm_device_info *info, uint32_t ordinal);

#endif
