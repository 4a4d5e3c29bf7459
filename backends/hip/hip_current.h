/* Prepares the calling thread for one call: makes the device current and relaxes the capture mode. Leave puts both
 * back, and the thread's last error. */
#ifndef GM_BACKENDS_HIP_CURRENT_H
#define GM_BACKENDS_HIP_CURRENT_H

#include "backends/shared/runtime/runtime.h"

/* `enter` and `leave` of HIP's table. */
gm_status gm__hip_enter(gm__runtime_device *device, gm__runtime_scope *out, gm_error *err);
void gm__hip_leave(const gm__runtime_device *device, const gm__runtime_scope *scope);

#endif
