/* gm's programs, as PTX for the driver's own compiler. */
#ifndef GM_BACKENDS_CUDA_CUDA_PROGRAM_H
#define GM_BACKENDS_CUDA_CUDA_PROGRAM_H

#include "backends/cuda/cuda_device.h"

/* program_code of CUDA's table. UNAVAILABLE: the driver has no modules. */
gm_status gm__cuda_program_code(gm__runtime_device *device, gm__runtime_program_id id, gm__runtime_code *out,
                                gm_error *err);

#endif
