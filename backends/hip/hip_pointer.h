/* Asks HIP about a pointer. */
#ifndef GM_BACKENDS_HIP_POINTER_H
#define GM_BACKENDS_HIP_POINTER_H

#include "backends/shared/runtime/runtime.h"

/* pointer_ask of HIP's table. */
gm_status gm__hip_pointer_ask(gm__runtime_device *device, uint64_t pointer, gm__runtime_facts *out, gm_error *err);

#endif
