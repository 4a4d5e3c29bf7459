/* Statuses for OpenCL's error numbers. Thread-safe, no state. */
#ifndef GM_BACKENDS_OPENCL_STATUS_H
#define GM_BACKENDS_OPENCL_STATUS_H

#include "backends/opencl/opencl_syms.h"

/* Codes that OpenCL's headers do not name. */
#define GM__OPENCL_NO_PLATFORM (-1001)  /* CL_PLATFORM_NOT_FOUND_KHR: the loader found no driver */
#define GM__OPENCL_NVIDIA_FAULT (-9999) /* NVIDIA: a kernel touched foreign memory, and the context is dead */

/* GM_OK for CL_SUCCESS. GM_ERR_DRIVER for an unknown number. */
gm_status gm__opencl_status(cl_int code);

/* "CL_OUT_OF_RESOURCES"; "unknown code" for a number without a name. Static storage. */
const char *gm__opencl_code_name(cl_int code);

/* Fill `err` with the code, its name and its meaning, and return its status. CL_SUCCESS becomes GM_ERR_DRIVER. */
gm_status gm__opencl_fail(gm_error *err, cl_int code, const char *op);

#endif
