#include "backends/cuda/cuda_context.h"

#include "core/base/error.h"

/* Invariant: after leave, a thread finds its own context and its own capture mode again. gm does not push a context
 * that is current already, as it mostly is in an engine's threads. */

/* Giving memory back must not depend on one call. Where pushing the context fails, gm sets it. */
static gm_status cuda_context_push(gm__runtime_device *device, gm__runtime_scope *scope, gm_error *err) {
  const gm__cuda_syms *cu = gm__cuda_of(device);
  CUcontext before = NULL;
  const bool told = cu->cuCtxGetCurrent(&before) == CUDA_SUCCESS;
  scope->before = (uintptr_t)before;
  if (told && before == device->context) return GM_OK;
  const CUresult code = cu->cuCtxPushCurrent_v2(device->context);
  scope->switched = code == CUDA_SUCCESS;
  if (scope->switched) return GM_OK;
  scope->set = told && cu->cuCtxSetCurrent(device->context) == CUDA_SUCCESS;
  return scope->set ? GM_OK : gm__runtime_fail(device, (int)code, "cuCtxPushCurrent", err);
}

gm_status gm__cuda_enter(gm__runtime_device *device, gm__runtime_scope *out, gm_error *err) {
  const gm__cuda_syms *cu = gm__cuda_of(device);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  const gm_status status = cuda_context_push(device, out, err);
  if (status != GM_OK || !cu->cuThreadExchangeStreamCaptureMode) return status;
  out->exchanged = cu->cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS;
  out->mode = (int)mode;
  return GM_OK;
}

/* A failed pop leaves gm's context on the stack. Leave then makes the thread's own context current again. */
void gm__cuda_leave(const gm__runtime_device *device, const gm__runtime_scope *scope) {
  const gm__cuda_syms *cu = gm__cuda_of(device);
  CUcontext popped = NULL;
  if (scope->exchanged) {
    CUstreamCaptureMode mode = (CUstreamCaptureMode)scope->mode;
    cu->cuThreadExchangeStreamCaptureMode(&mode);
  }
  const bool stays = scope->switched && cu->cuCtxPopCurrent_v2(&popped) != CUDA_SUCCESS;
  if (stays || scope->set) cu->cuCtxSetCurrent((CUcontext)(uintptr_t)scope->before);
}
