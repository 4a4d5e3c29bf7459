/* The border of the OpenCL backend: its table of entries. */
#ifndef GM_BACKENDS_OPENCL_BACKEND_H
#define GM_BACKENDS_OPENCL_BACKEND_H

#include "gm/backend.h"

extern const gm_backend_ops gm__opencl_backend;

#endif
