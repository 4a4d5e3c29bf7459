#include "backends/hip/hip_program.h"

#include <stdio.h>

#include "backends/hip/hip_rtc.h"
#include "backends/shared/runtime/runtime_program_text.h"
#include "core/base/env.h"
#include "core/base/error.h"

/* The architecture comes from the kernel's files. A user may tell ROCm to take the cards for others; then the compiler
 * asks the runtime, as it does without an architecture. HIP 5.2's compiler crashes on a card that it does not know. So
 * gm asks only for the architecture that this card has, or is taken for. */
static const char *program_architecture(const gm__runtime_device *device) {
  char one[48];
  snprintf(one, sizeof one, "HSA_OVERRIDE_GFX_VERSION_%u", (unsigned)device->info.index);
  const bool other = gm__env("HSA_OVERRIDE_GFX_VERSION") || gm__env(one);
  return other ? "" : device->info.capability;
}

gm_status gm__hip_program_code(gm__runtime_device *device, gm__runtime_program_id id, gm__runtime_code *out,
                               gm_error *err) {
  const gm__hip_syms *hip = gm__hip_of(device);
  if (!hip->hipModuleLoadData || !hip->hipModuleUnload || !hip->hipModuleGetFunction || !hip->hipModuleLaunchKernel) {
    return gm__fail(err, GM_ERR_UNAVAILABLE, "hipModuleLoadData", "the runtime has no modules");
  }
  return gm__hip_rtc_compile((const gm__hip_driver *)device->driver, program_architecture(device),
                             gm__runtime_program_texts[id], out, err);
}

void gm__hip_program_code_release(const gm__runtime_device *device, const gm__runtime_code *code) {
  gm__hip_rtc_release((const gm__hip_driver *)device->driver, code);
}
