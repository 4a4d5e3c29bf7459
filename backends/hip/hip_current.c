#include "backends/hip/hip_current.h"

#include "backends/hip/hip_status.h"

/* Invariant: between enter and leave every path runs through leave. The last error is HIP's: each failed call is kept
 * for the thread until hipGetLastError is called, where an engine that looks for failed launches would find gm's. One
 * that was pending before stays. */

/* Giving memory back must not hang on one call that fails: each is tried twice. */
static hipError_t hip_current_get(const gm__hip_syms *hip, int *out) {
  const hipError_t code = hip->hipGetDevice(out);
  return code == hipSuccess ? code : hip->hipGetDevice(out);
}

static hipError_t hip_current_set(const gm__hip_syms *hip, int device) {
  const hipError_t code = hip->hipSetDevice(device);
  return code == hipSuccess ? code : hip->hipSetDevice(device);
}

static gm_status hip_current_switch(gm__hip_device *device, gm__hip_scope *scope, gm_error *err) {
  const int wanted = (int)device->info.index;
  hipError_t code = hip_current_get(scope->hip, &scope->before);
  if (code != hipSuccess) return gm__hip_device_fail(device, code, "hipGetDevice", err);
  if (scope->before == wanted) return GM_OK;
  code = hip_current_set(scope->hip, wanted);
  if (code != hipSuccess) return gm__hip_device_fail(device, code, "hipSetDevice", err);
  scope->switched = true;
  return GM_OK;
}

gm_status gm__hip_enter(gm__hip_device *device, gm__hip_scope *out, gm_error *err) {
  const int32_t lost = atomic_load(&device->lost);
  gm__hip_scope scope = {.hip = device->hip, .mode = hipStreamCaptureModeRelaxed};
  if (lost) return gm__hip_device_fail(device, (hipError_t)lost, "hip", err);
  scope.clean = gm__hip_thread_clean(scope.hip);
  const gm_status status = hip_current_switch(device, &scope, err);
  if (status != GM_OK) {
    gm__hip_thread_wipe(scope.hip, scope.clean);
    return status;
  }
  if (scope.hip->hipThreadExchangeStreamCaptureMode) {
    scope.exchanged = scope.hip->hipThreadExchangeStreamCaptureMode(&scope.mode) == hipSuccess;
  }
  *out = scope;
  return GM_OK;
}

gm_status gm__hip_enter_release(gm__hip_device *device, gm__hip_scope *out, bool *out_gone, gm_error *err) {
  const gm_status status = atomic_load(&device->lost) ? GM_ERR_DEVICE_LOST : gm__hip_enter(device, out, err);
  *out_gone = status == GM_ERR_DEVICE_LOST || status == GM_ERR_UNAVAILABLE;
  return *out_gone ? GM_OK : status;
}

void gm__hip_leave(const gm__hip_scope *scope) {
  if (scope->exchanged) {
    hipStreamCaptureMode mode = scope->mode;
    scope->hip->hipThreadExchangeStreamCaptureMode(&mode);
  }
  if (scope->switched) hip_current_set(scope->hip, scope->before);
  gm__hip_thread_wipe(scope->hip, scope->clean);
}
