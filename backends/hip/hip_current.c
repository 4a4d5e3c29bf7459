#include "backends/hip/hip_current.h"

#include "backends/hip/hip_device.h"

/* HIP keeps a failed call as the thread's last error until hipGetLastError is called. An engine that looks for failed
 * launches would find gm's errors there. An error that was pending before stays. */

/* Giving memory back must not depend on one call. gm tries each of these twice. */
static hipError_t hip_current_get(const gm__hip_syms *hip, int *out) {
  const hipError_t code = hip->hipGetDevice(out);
  return code == hipSuccess ? code : hip->hipGetDevice(out);
}

static hipError_t hip_current_set(const gm__hip_syms *hip, int device) {
  const hipError_t code = hip->hipSetDevice(device);
  return code == hipSuccess ? code : hip->hipSetDevice(device);
}

static gm_status hip_current_switch(gm__runtime_device *device, gm__runtime_scope *scope, gm_error *err) {
  const gm__hip_syms *hip = gm__hip_of(device);
  int before = 0;
  hipError_t code = hip_current_get(hip, &before);
  if (code != hipSuccess) return gm__runtime_fail(device, (int)code, "hipGetDevice", err);
  scope->before = (uint64_t)before;
  if (before == device->ordinal) return GM_OK;
  code = hip_current_set(hip, device->ordinal);
  if (code != hipSuccess) return gm__runtime_fail(device, (int)code, "hipSetDevice", err);
  scope->switched = true;
  return GM_OK;
}

gm_status gm__hip_enter(gm__runtime_device *device, gm__runtime_scope *out, gm_error *err) {
  const gm__hip_syms *hip = gm__hip_of(device);
  hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
  out->clean = gm__hip_thread_clean(hip);
  const gm_status status = hip_current_switch(device, out, err);
  if (status != GM_OK) {
    gm__hip_thread_wipe(hip, out->clean);
    return status;
  }
  if (hip->hipThreadExchangeStreamCaptureMode) {
    out->exchanged = hip->hipThreadExchangeStreamCaptureMode(&mode) == hipSuccess;
    out->mode = (int)mode;
  }
  return GM_OK;
}

void gm__hip_leave(const gm__runtime_device *device, const gm__runtime_scope *scope) {
  const gm__hip_syms *hip = gm__hip_of(device);
  if (scope->exchanged) {
    hipStreamCaptureMode mode = (hipStreamCaptureMode)scope->mode;
    hip->hipThreadExchangeStreamCaptureMode(&mode);
  }
  if (scope->switched) hip_current_set(hip, (int)scope->before);
  gm__hip_thread_wipe(hip, scope->clean);
}
