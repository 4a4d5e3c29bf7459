/* CUDA's table of what it has in common with HIP. */
#ifndef GM_BACKENDS_CUDA_RUNTIME_H
#define GM_BACKENDS_CUDA_RUNTIME_H

#include "backends/shared/runtime/runtime.h"

extern const gm__runtime gm__cuda_runtime;

#endif
