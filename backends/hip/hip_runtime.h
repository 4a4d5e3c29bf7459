/* HIP's table of what it has in common with CUDA. */
#ifndef GM_BACKENDS_HIP_RUNTIME_H
#define GM_BACKENDS_HIP_RUNTIME_H

#include "backends/shared/runtime/runtime.h"

extern const gm__runtime gm__hip_runtime;

#endif
