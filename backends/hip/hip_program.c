#include "backends/hip/hip_program.h"

#include <stdio.h>

#include "backends/hip/hip_rtc.h"
#include "backends/shared/runtime/runtime_stream.h"
#include "core/base/env.h"
#include "core/base/error.h"
#include "core/base/log.h"

/* Invariants: one thread moves `state` from NONE to BUSY. It writes `module` and `fill` before it sets READY. REFUSED
 * stays. A thread that finds BUSY does not wait: it goes without the kernel. */

static const char program_text[] =
#define GM__HIP_PROGRAM(...) "extern \"C\" __global__ " #__VA_ARGS__
#include "backends/hip/hip_program.def"
#undef GM__HIP_PROGRAM
    ;

static gm_status program_load(gm__hip_device *device, const gm__hip_code *code, gm_error *err) {
  const gm__hip_syms *hip = gm__hip_of(device);
  gm__hip_program *program = &device->program;
  hipModule_t module = NULL;
  hipError_t answer = hip->hipModuleLoadData(&module, code->bytes);
  if (answer != hipSuccess) return gm__runtime_fail(&device->base, (int)answer, "hipModuleLoadData", err);
  if (!module) return gm__runtime_nonsense(&device->base, "hipModuleLoadData", "gave no module", err);
  program->module = module;
  answer = hip->hipModuleGetFunction(&program->fill, program->module, "gm_hip_fill");
  if (answer != hipSuccess) return gm__runtime_fail(&device->base, (int)answer, "hipModuleGetFunction", err);
  return program->fill ? GM_OK : gm__runtime_nonsense(&device->base, "hipModuleGetFunction", "gave no function", err);
}

/* The architecture comes from the kernel's files. A user may tell ROCm to take the cards for others; then the compiler
 * asks the runtime, as it does without an architecture. HIP 5.2's compiler crashes on a card that it does not know. So
 * gm asks only for the architecture that this card has, or is taken for. */
static const char *program_architecture(const gm__hip_device *device) {
  char one[48];
  snprintf(one, sizeof one, "HSA_OVERRIDE_GFX_VERSION_%u", (unsigned)device->base.info.index);
  const bool other = gm__env("HSA_OVERRIDE_GFX_VERSION") || gm__env(one);
  return other ? "" : device->base.info.capability;
}

/* `out_later`: a capture began while hiprtc was at work, so gm tries again later. */
static gm_status program_make(gm__hip_device *device, bool *out_later, gm_error *err) {
  const gm__hip_syms *hip = gm__hip_of(device);
  gm__hip_code code = {NULL, 0};
  if (!hip->hipModuleLoadData || !hip->hipModuleUnload || !hip->hipModuleGetFunction || !hip->hipModuleLaunchKernel) {
    return gm__fail(err, GM_ERR_UNAVAILABLE, "hipModuleLoadData", "the runtime has no modules");
  }
  gm_status status = gm__hip_rtc_compile((const gm__hip_driver *)device->base.driver, program_architecture(device),
                                         program_text, &code, err);
  if (status != GM_OK) return status;
  *out_later = gm__runtime_capture_check(&device->base, NULL) != GM_OK;
  if (!*out_later) status = program_load(device, &code, err);
  gm__hip_rtc_release((const gm__hip_driver *)device->base.driver, &code);
  return status;
}

void gm__hip_program_refuse(gm__hip_device *device, const gm_error *why) {
  if (atomic_exchange(&device->program.state, GM__HIP_PROGRAM_REFUSED) == GM__HIP_PROGRAM_REFUSED) return;
  gm__log(device->base.services, why->status == GM_ERR_UNAVAILABLE ? GM_LOG_INFO : GM_LOG_WARN,
          "hip device %u: fills with patterns of 8 and 16 bytes are done by copies, not by a kernel: %s",
          (unsigned)device->base.info.index, why->message);
}

hipFunction_t gm__hip_program_fill(gm__hip_device *device) {
  gm__hip_program *program = &device->program;
  gm_error why = {.status = GM_OK};
  bool later = false;
  int state = atomic_load(&program->state);
  if (state == GM__HIP_PROGRAM_READY) return program->fill;
  if (state != GM__HIP_PROGRAM_NONE || gm__runtime_capture_check(&device->base, NULL) != GM_OK) return NULL;
  if (!atomic_compare_exchange_strong(&program->state, &state, GM__HIP_PROGRAM_BUSY)) return NULL;
  if (program_make(device, &later, &why) != GM_OK) {
    gm__hip_program_refuse(device, &why);
    return NULL;
  }
  atomic_store(&program->state, later ? GM__HIP_PROGRAM_NONE : GM__HIP_PROGRAM_READY);
  return later ? NULL : program->fill;
}

void gm__hip_program_unload(gm__runtime_device *device) {
  const gm__hip_device *closing = (const gm__hip_device *)device;
  if (closing->program.module) gm__hip_of(device)->hipModuleUnload(closing->program.module);
}
