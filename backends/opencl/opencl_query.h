/* Questions to the driver about platforms and devices. gm checks the size, the end and the characters of each answer. A
 * question that the driver refuses, or answers with the wrong size, gives the default. */
#ifndef GM_BACKENDS_OPENCL_QUERY_H
#define GM_BACKENDS_OPENCL_QUERY_H

#include "backends/opencl/opencl_driver.h"

/* Ask for a value of exactly `bytes`. Returns CL_SUCCESS, the driver's code, or CL_INVALID_VALUE for another size. *out
 * is written only with CL_SUCCESS. */
cl_int gm__opencl_device_value(const gm__opencl_driver *driver, cl_device_id id, cl_device_info what, void *out,
                               size_t bytes);

/* Ask for a value of 8 or 4 bytes. Returns `otherwise` without an answer. */
uint64_t gm__opencl_device_u64(const gm__opencl_driver *driver, cl_device_id id, cl_device_info what,
                               uint64_t otherwise);
cl_uint gm__opencl_device_uint(const gm__opencl_driver *driver, cl_device_id id, cl_device_info what,
                               cl_uint otherwise);

/* Ask for a text: one line, cut to `capacity`, without surrounding blanks. Control characters and bytes beyond ASCII
 * become '?'. Without an answer it is "". Fails only with OUT_OF_HOST_MEMORY. */
gm_status gm__opencl_device_text(const gm__opencl_driver *driver, cl_device_id id, cl_device_info what, char *out,
                                 size_t capacity, gm_error *err);
gm_status gm__opencl_platform_text(const gm__opencl_driver *driver, cl_platform_id id, cl_platform_info what, char *out,
                                   size_t capacity, gm_error *err);

/* Set bit i of *out when words[i] is in the device's list of extensions. Fails only with OUT_OF_HOST_MEMORY. */
gm_status gm__opencl_device_extensions(const gm__opencl_driver *driver, cl_device_id id, const char *const *words,
                                       uint32_t count, uint32_t *out, gm_error *err);

#endif
