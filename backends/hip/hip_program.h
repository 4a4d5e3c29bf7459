/* gm's programs, as code that hiprtc makes of their text. */
#ifndef GM_BACKENDS_HIP_HIP_PROGRAM_H
#define GM_BACKENDS_HIP_HIP_PROGRAM_H

#include "backends/hip/hip_device.h"

/* program_code of HIP's table. It takes up to seconds. UNAVAILABLE: there is no hiprtc, or the runtime has no modules.
 * Others: those of gm__hip_rtc_compile. */
gm_status gm__hip_program_code(gm__runtime_device *device, gm__runtime_program_id id, gm__runtime_code *out,
                               gm_error *err);
void gm__hip_program_code_release(const gm__runtime_device *device, const gm__runtime_code *code);

#endif
