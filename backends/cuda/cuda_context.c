#include "backends/cuda/cuda_context.h"

#include "backends/cuda/cuda_status.h"
#include "core/base/error.h"

/* Invariant: between enter and leave every path runs through leave, so that a thread finds its own context and its own
 * capture mode again. A context that is current already is not pushed: most calls of an engine's thread are such. */

/* Giving memory back must not hang on one call that fails: where pushing does, setting is tried. */
static gm_status cuda_context_push(gm__cuda_device *device, gm__cuda_scope *scope, gm_error *err) {
  const bool told = scope->cu->cuCtxGetCurrent(&scope->before) == CUDA_SUCCESS;
  if (told && scope->before == device->context) return GM_OK;
  CUresult code = scope->cu->cuCtxPushCurrent_v2(device->context);
  scope->pushed = code == CUDA_SUCCESS;
  if (scope->pushed) return GM_OK;
  scope->set = told && scope->cu->cuCtxSetCurrent(device->context) == CUDA_SUCCESS;
  return scope->set ? GM_OK : gm__cuda_device_fail(device, code, "cuCtxPushCurrent", err);
}

gm_status gm__cuda_enter(gm__cuda_device *device, gm__cuda_scope *out, gm_error *err) {
  const int32_t lost = atomic_load(&device->lost);
  gm__cuda_scope scope = {.cu = device->cu, .mode = CU_STREAM_CAPTURE_MODE_RELAXED};
  if (lost) return gm__cuda_device_fail(device, (CUresult)lost, "cuda", err);
  const gm_status status = cuda_context_push(device, &scope, err);
  if (status != GM_OK) return status;
  if (scope.cu->cuThreadExchangeStreamCaptureMode) {
    scope.exchanged = scope.cu->cuThreadExchangeStreamCaptureMode(&scope.mode) == CUDA_SUCCESS;
  }
  *out = scope;
  return GM_OK;
}

gm_status gm__cuda_enter_release(gm__cuda_device *device, gm__cuda_scope *out, bool *out_gone, gm_error *err) {
  const gm_status status = atomic_load(&device->lost) ? GM_ERR_DEVICE_LOST : gm__cuda_enter(device, out, err);
  *out_gone = status == GM_ERR_DEVICE_LOST || (status == GM_ERR_UNAVAILABLE);
  return *out_gone ? GM_OK : status;
}

/* A pop that fails leaves gm's context on the stack: then at least what was current is made current again. */
void gm__cuda_leave(const gm__cuda_scope *scope) {
  CUcontext popped = NULL;
  if (scope->exchanged) {
    CUstreamCaptureMode mode = scope->mode;
    scope->cu->cuThreadExchangeStreamCaptureMode(&mode);
  }
  const bool stays = scope->pushed && scope->cu->cuCtxPopCurrent_v2(&popped) != CUDA_SUCCESS;
  if (stays || scope->set) scope->cu->cuCtxSetCurrent(scope->before);
}
