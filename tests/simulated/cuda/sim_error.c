/* Names and texts of errors. */
#include <stdio.h>
#include <string.h>

#include "tests/simulated/cuda/sim_call.h"

#define SIM_ERRORS(ERROR)                                                     \
  ERROR(SUCCESS, "no error")                                                  \
  ERROR(ERROR_INVALID_VALUE, "invalid argument")                              \
  ERROR(ERROR_OUT_OF_MEMORY, "out of memory")                                 \
  ERROR(ERROR_NOT_INITIALIZED, "initialization error")                        \
  ERROR(ERROR_DEINITIALIZED, "driver shutting down")                          \
  ERROR(ERROR_NO_DEVICE, "no CUDA-capable device is detected")                \
  ERROR(ERROR_INVALID_DEVICE, "invalid device ordinal")                       \
  ERROR(ERROR_INVALID_IMAGE, "device kernel image is invalid")                \
  ERROR(ERROR_INVALID_CONTEXT, "invalid device context")                      \
  ERROR(ERROR_MAP_FAILED, "mapping of buffer object failed")                  \
  ERROR(ERROR_INVALID_PTX, "a PTX JIT compilation failed")                    \
  ERROR(ERROR_NO_BINARY_FOR_GPU, "no kernel image is available")              \
  ERROR(ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported")        \
  ERROR(ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported")  \
  ERROR(ERROR_INVALID_HANDLE, "invalid resource handle")                      \
  ERROR(ERROR_NOT_FOUND, "named symbol not found")                            \
  ERROR(ERROR_NOT_READY, "device not ready")                                  \
  ERROR(ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered")    \
  ERROR(ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled")  \
  ERROR(ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled")    \
  ERROR(ERROR_PRIMARY_CONTEXT_ACTIVE, "the primary context is active")        \
  ERROR(ERROR_CONTEXT_IS_DESTROYED, "context is destroyed")                   \
  ERROR(ERROR_HOST_MEMORY_ALREADY_REGISTERED, "memory already registered")    \
  ERROR(ERROR_HOST_MEMORY_NOT_REGISTERED, "pointer is not registered")        \
  ERROR(ERROR_LAUNCH_FAILED, "unspecified launch failure")                    \
  ERROR(ERROR_NOT_PERMITTED, "operation not permitted")                       \
  ERROR(ERROR_NOT_SUPPORTED, "operation not supported")                       \
  ERROR(ERROR_STREAM_CAPTURE_UNSUPPORTED, "not permitted while capturing")    \
  ERROR(ERROR_STREAM_CAPTURE_INVALIDATED, "capture was invalidated before")   \
  ERROR(ERROR_STREAM_CAPTURE_MERGE, "merge of two captures")                  \
  ERROR(ERROR_STREAM_CAPTURE_UNMATCHED, "capture was not begun here")         \
  ERROR(ERROR_STREAM_CAPTURE_UNJOINED, "capture has unjoined work")           \
  ERROR(ERROR_STREAM_CAPTURE_ISOLATION, "dependency crosses the capture")     \
  ERROR(ERROR_STREAM_CAPTURE_IMPLICIT, "implicit dependency on a capture")    \
  ERROR(ERROR_CAPTURED_EVENT, "operation on an event of a capture")           \
  ERROR(ERROR_STREAM_CAPTURE_WRONG_THREAD, "capture ended by another thread") \
  ERROR(ERROR_UNKNOWN, "unknown error")

typedef struct error_text {
  CUresult code;
  const char *name, *text;
} error_text;

static const error_text error_texts[] = {
#define SIM_ERROR_ROW(name, text) {CUDA_##name, "CUDA_" #name, text " (simulated)"},
    SIM_ERRORS(SIM_ERROR_ROW)
#undef SIM_ERROR_ROW
};

static const error_text *error_find(CUresult code) {
  for (size_t i = 0; i < sizeof error_texts / sizeof error_texts[0]; i++)
    if (error_texts[i].code == code) return &error_texts[i];
  return NULL;
}

CUresult cuGetErrorName(CUresult code, const char **out) {
  CUresult result = sim_enter(sim_id_cuGetErrorName);
  if (result) return result;
  if (!out) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  const error_text *found = error_find(code);
  *out = found ? found->name : NULL;
  return sim_leave(found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuGetErrorString(CUresult code, const char **out) {
  CUresult result = sim_enter(sim_id_cuGetErrorString);
  if (result) return result;
  if (!out) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  const error_text *found = error_find(code);
  *out = found ? found->text : NULL;
  return sim_leave(found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}
