/* Who a device is: short words, PCI address, UUID. */
#ifndef GM_BACKENDS_OPENCL_IDENTITY_H
#define GM_BACKENDS_OPENCL_IDENTITY_H

#include "backends/opencl/opencl_driver.h"

/* info->vendor and info->driver, from the platform's name, the vendor's number and the vendor's text: "nvidia", "amd",
 * "intel", "mesa", "pocl", …; "pocl", "rusticl", "rocm", "neo", "nvidia", …; of an unknown one its first word. */
void gm__opencl_words(const char *platform, uint32_t vendor_id, const char *vendor, gm_device_info *info);

/* info->uuid, luid and pci, as far as the driver has extensions that tell. Fails with OUT_OF_HOST_MEMORY only. */
gm_status gm__opencl_identify(const gm__opencl_driver *driver, cl_device_id id, gm_device_info *info, gm_error *err);

/* Where the driver told no UUID: one made from backend, driver, name and ordinal, the same in every process. */
void gm__opencl_derive_uuid(gm_device_info *info, uint32_t ordinal);

#endif
