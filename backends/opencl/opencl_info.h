/* The properties of a device, and the driver's figures about its memory. */
#ifndef GM_BACKENDS_OPENCL_INFO_H
#define GM_BACKENDS_OPENCL_INFO_H

#include "backends/opencl/opencl_identity.h"

/* Fill *out, but for the index, a UUID where the driver has none, and what adoption changes. A field without an answer
 * stays "not known". Fails only with OUT_OF_HOST_MEMORY. */
gm_status gm__opencl_describe(const gm__opencl_driver *driver, const char *platform, cl_device_id id,
                              gm_device_info *out, gm_error *err);

/* Describe an engine's device that no platform lists. The driver tells its platform. */
gm_status gm__opencl_describe_adopted(const gm__opencl_driver *driver, cl_device_id id, gm_device_info *out,
                                      gm__opencl_kinds *out_kinds, gm_error *err);

/* Find the kinds of memory of a described device, and set info->capabilities to match. A kind counts only when all its
 * entries are there and the driver tells its capabilities. Fails only with OUT_OF_HOST_MEMORY. */
gm_status gm__opencl_ask_kinds(const gm__opencl_driver *driver, cl_platform_id platform, cl_device_id id,
                               gm_device_info *info, gm__opencl_kinds *out, gm_error *err);

/* The OpenCL version of the device: 12 for 1.2, 30 for 3.0; 0: not told. */
uint32_t gm__opencl_version(const gm_device_info *info);

/* The driver's raw figures: global size, kind, AMD's free memory. */
void gm__opencl_figures(const gm__opencl_driver *driver, cl_device_id id, const gm_device_info *info,
                        gm_raw_figures *out);

#endif
