/* A CUDA runtime without a card, for measuring allocators' own bookkeeping. Memory is addresses of the fake device,
 * events and streams are numbers, and all work is done at once. Built as libcudart.so.13. It has what allocators call.
 * An adapter that needs more fails to link, and says what. */
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench/peers/fake/fake_device.h"

#undef cudaGetDeviceProperties

void *fake_driver_entry(const char *name);

static _Thread_local cudaError_t fake_last;
static _Atomic uintptr_t fake_numbers = 0x10000; /* of events and streams */

static void *fake_number(void) { return (void *)(fake_numbers += 16); }

static cudaError_t fake_fail(cudaError_t error) { return fake_last = error; }

/* ---- memory ---- */

cudaError_t cudaMalloc(void **out, size_t bytes) {
  *out = (void *)fake_device_alloc(bytes);
  return *out ? cudaSuccess : fake_fail(cudaErrorMemoryAllocation);
}

cudaError_t cudaFree(void *pointer) {
  if (!pointer || fake_device_free((uintptr_t)pointer) == 0) return cudaSuccess;
  return fake_fail(cudaErrorInvalidValue);
}

cudaError_t cudaMallocAsync(void **out, size_t bytes, cudaStream_t stream) {
  (void)stream;
  return cudaMalloc(out, bytes);
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream) {
  (void)stream;
  return cudaFree(pointer);
}

cudaError_t cudaMemGetInfo(size_t *out_free, size_t *out_total) {
  *out_total = fake_device_capacity();
  *out_free = *out_total - fake_device_used();
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags) {
  (void)flags;
  *out = malloc(bytes);
  return *out ? cudaSuccess : fake_fail(cudaErrorMemoryAllocation);
}

cudaError_t cudaMallocHost(void **out, size_t bytes) { return cudaHostAlloc(out, bytes, 0); }

cudaError_t cudaFreeHost(void *pointer) {
  free(pointer);
  return cudaSuccess;
}

/* ---- the device ---- */

cudaError_t cudaGetDevice(int *out) {
  *out = 0;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *out) {
  *out = 1;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device) {
  (void)device;
  memset(out, 0, sizeof *out);
  strcpy(out->name, "fake");
  out->totalGlobalMem = fake_device_capacity();
  out->major = 9;
  out->multiProcessorCount = 132;
  out->warpSize = 32;
  out->maxThreadsPerBlock = 1024;
  out->maxThreadsPerMultiProcessor = 2048;
  out->memoryPoolsSupported = 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *out, enum cudaDeviceAttr attribute, int device) {
  (void)attribute, (void)device;
  *out = 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *out, int device, int peer) {
  (void)device, (void)peer;
  *out = 0;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *out) {
  *out = 13000;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *out) { return cudaDriverGetVersion(out); }

cudaError_t cudaDeviceGetStreamPriorityRange(int *out_least, int *out_greatest) {
  *out_least = 0;
  *out_greatest = -1;
  return cudaSuccess;
}

/* ---- events and streams ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
  (void)flags;
  *out = fake_number();
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out) { return cudaEventCreateWithFlags(out, 0); }

cudaError_t cudaEventElapsedTime(float *out, cudaEvent_t begin, cudaEvent_t end) {
  (void)begin, (void)end;
  *out = 0;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority) {
  (void)flags, (void)priority;
  *out = fake_number();
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags) {
  return cudaStreamCreateWithPriority(out, flags, 0);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *out) {
  (void)stream;
  *out = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

/* ---- errors and entries ---- */

const char *cudaGetErrorName(cudaError_t error) { return error == cudaSuccess ? "cudaSuccess" : "cudaError"; }

const char *cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : "fake runtime";
}

cudaError_t cudaGetLastError(void) {
  cudaError_t error = fake_last;
  fake_last = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError(void) { return fake_last; }

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned version, unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *out_result) {
  (void)version, (void)flags;
  *out = fake_driver_entry(name);
  if (out_result) *out_result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
