/* Questions to the driver about platforms and devices. An answer is checked before it is believed: its size, its end,
 * its characters. A question that the driver refuses, or answers with the wrong size, leaves the default. */
#ifndef GM_BACKENDS_OPENCL_QUERY_H
#define GM_BACKENDS_OPENCL_QUERY_H

#include "backends/opencl/opencl_driver.h"

/* A value of exactly `bytes`: CL_SUCCESS, the driver's code, or CL_INVALID_VALUE when the size is not that. *out is
 * written only with CL_SUCCESS. */
cl_int gm__opencl_device_value(const gm__opencl_driver *driver, cl_device_id id, cl_device_info what, void *out,
                               size_t bytes);

/* The same for the two common sizes; `otherwise` when there is no answer. */
uint64_t gm__opencl_device_u64(const gm__opencl_driver *driver, cl_device_id id, cl_device_info what,
                               uint64_t otherwise);
cl_uint gm__opencl_device_uint(const gm__opencl_driver *driver, cl_device_id id, cl_device_info what,
                               cl_uint otherwise);

/* One line without control characters, surrounding blanks and bytes beyond ASCII, cut to `capacity`; "" when there is
 * no answer. Fails with OUT_OF_HOST_MEMORY only. */
gm_status gm__opencl_device_text(const gm__opencl_driver *driver, cl_device_id id, cl_device_info what, char *out,
                                 size_t capacity, gm_error *err);
gm_status gm__opencl_platform_text(const gm__opencl_driver *driver, cl_platform_id id, cl_platform_info what, char *out,
                                   size_t capacity, gm_error *err);

/* Bit i of *out is set when words[i] is in the device's list of extensions. Fails as the texts do. */
gm_status gm__opencl_device_extensions(const gm__opencl_driver *driver, cl_device_id id, const char *const *words,
                                       uint32_t count, uint32_t *out, gm_error *err);

#endif
