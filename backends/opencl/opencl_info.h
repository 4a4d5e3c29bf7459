/* What a device is and can do, and what the driver says about its memory. */
#ifndef GM_BACKENDS_OPENCL_INFO_H
#define GM_BACKENDS_OPENCL_INFO_H

#include "backends/opencl/opencl_identity.h"

/* Everything but index, a UUID where the driver has none, and what adoption changes. A question without an answer
 * leaves its field at "not known"; fails with OUT_OF_HOST_MEMORY only. */
gm_status gm__opencl_describe(const gm__opencl_driver *driver, const char *platform, cl_device_id id,
                              gm_device_info *out, gm_error *err);

/* The same for a device of the engine's that no platform lists; its platform is asked for. */
gm_status gm__opencl_describe_adopted(const gm__opencl_driver *driver, cl_device_id id, gm_device_info *out,
                                      gm__opencl_kinds *out_kinds, gm_error *err);

/* The kinds of memory that a described device has; info->capabilities follow. A kind whose entries are missing, or
 * whose capabilities the driver does not tell, is none. Fails with OUT_OF_HOST_MEMORY only. */
gm_status gm__opencl_ask_kinds(const gm__opencl_driver *driver, cl_platform_id platform, cl_device_id id,
                               gm_device_info *info, gm__opencl_kinds *out, gm_error *err);

/* The OpenCL version that the device has, 12 for 1.2, 30 for 3.0; 0: not told. */
uint32_t gm__opencl_version(const gm_device_info *info);

/* Raw figures, as the driver gives them: global size, kind, AMD's free memory. */
void gm__opencl_figures(const gm__opencl_driver *driver, cl_device_id id, const gm_device_info *info,
                        gm_raw_figures *out);

#endif
