#include "tests/simulated/hip/sim_hip_thread.h"

#include <pthread.h>

enum { THREAD_DEVICES = 64 };

static pthread_mutex_t thread_lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext thread_contexts[THREAD_DEVICES];
static _Thread_local int thread_device;
static _Thread_local hipError_t thread_error;

CUresult sim_hip_context_of(int device, CUcontext *out) {
  CUresult result = device < 0 || device >= THREAD_DEVICES ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
  if (result) return result;
  pthread_mutex_lock(&thread_lock);
  if (!thread_contexts[device]) result = cuDevicePrimaryCtxRetain(&thread_contexts[device], device);
  *out = thread_contexts[device];
  pthread_mutex_unlock(&thread_lock);
  return result;
}

CUresult sim_hip_context(void) {
  CUcontext context = NULL, current = NULL;
  CUresult result = cuInit(0);
  if (!result) result = sim_hip_context_of(thread_device, &context);
  if (!result) result = cuCtxGetCurrent(&current);
  return result || current == context ? result : cuCtxSetCurrent(context);
}

int sim_hip_device_of(CUcontext context) {
  int found = -1;
  pthread_mutex_lock(&thread_lock);
  for (int i = 0; i < THREAD_DEVICES && found < 0; i++) {
    if (context && thread_contexts[i] == context) found = i;
  }
  pthread_mutex_unlock(&thread_lock);
  return found;
}

hipError_t sim_hip_answer(CUresult result) {
  if (result) thread_error = (hipError_t)result;
  return (hipError_t)result;
}

hipError_t hipPeekAtLastError(void) { return thread_error; }

hipError_t hipGetLastError(void) {
  const hipError_t error = thread_error;
  thread_error = hipSuccess;
  return error;
}

hipError_t hipGetDevice(int *device) {
  if (!device) return sim_hip_answer(CUDA_ERROR_INVALID_VALUE);
  *device = thread_device;
  return hipSuccess;
}

/* Like the runtime, makes the device's context. */
hipError_t hipSetDevice(int device) {
  CUcontext context = NULL;
  int count = 0;
  CUresult result = cuInit(0);
  if (!result) result = cuDeviceGetCount(&count);
  if (!result && (device < 0 || device >= count)) result = CUDA_ERROR_INVALID_DEVICE;
  if (!result) result = sim_hip_context_of(device, &context);
  if (!result) thread_device = device;
  return sim_hip_answer(result);
}
