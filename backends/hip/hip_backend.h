/* The HIP backend's table. */
#ifndef GM_BACKENDS_HIP_BACKEND_H
#define GM_BACKENDS_HIP_BACKEND_H

#include "gm/backend.h"

extern const gm_backend_ops gm__hip_backend;

#endif
