/* The CUDA backend's table. */
#ifndef GM_BACKENDS_CUDA_BACKEND_H
#define GM_BACKENDS_CUDA_BACKEND_H

#include "gm/backend.h"

extern const gm_backend_ops gm__cuda_backend;

#endif
