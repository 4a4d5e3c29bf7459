#include <string.h>

#include "backends/hip/hip_copy.h"
#include "backends/hip/hip_program.h"
#include "backends/hip/hip_status.h"
#include "core/base/error.h"
#include "core/base/fill_plan.h"

/* Each thread of the kernel sets 16 bytes at a time; beyond so many blocks it goes round. HIP takes fewer than 2^32
 * threads in one dimension. */
enum { FILL_THREADS = 256, FILL_BLOCKS = 2048, FILL_PIECE = 16 };

typedef struct hip_fill {
  gm__hip_device *device;
  hipStream_t stream;
  const char *op; /* the last call */
} hip_fill;

static int hip_fill_bytes(void *user, uint64_t at, uint8_t value, uint64_t count) {
  hip_fill *fill = user;
  fill->op = "hipMemsetD8Async";
  return (int)fill->device->hip->hipMemsetD8Async((hipDeviceptr_t)(uintptr_t)at, value, (size_t)count, fill->stream);
}

static int hip_fill_words(void *user, uint64_t at, uint32_t word, uint64_t count) {
  hip_fill *fill = user;
  fill->op = "hipMemsetD32Async";
  return (int)fill->device->hip->hipMemsetD32Async((hipDeviceptr_t)(uintptr_t)at, (int)word, (size_t)count,
                                                   fill->stream);
}

static int hip_fill_copy(void *user, uint64_t to, uint64_t from, uint64_t bytes) {
  hip_fill *fill = user;
  fill->op = "hipMemcpyAsync";
  return (int)gm__hip_copy_enqueue(fill->device, fill->stream, to, from, bytes, hipMemcpyDefault);
}

static hipError_t hip_fill_launch(hip_fill *fill, hipFunction_t kernel, uint64_t at, uint64_t bytes,
                                  const uint8_t *aligned) {
  uint64_t halves[2];
  memcpy(halves, aligned, sizeof halves);
  void *parameters[] = {&at, &bytes, &halves[0], &halves[1]};
  const uint64_t wanted = bytes / FILL_PIECE / FILL_THREADS + 1;
  const unsigned blocks = wanted < FILL_BLOCKS ? (unsigned)wanted : FILL_BLOCKS;
  fill->op = "hipModuleLaunchKernel";
  return fill->device->hip->hipModuleLaunchKernel(kernel, blocks, 1, 1, FILL_THREADS, 1, 1, 0, fill->stream, parameters,
                                                  NULL);
}

/* By the kernel, where there is one. A launch that fails has done nothing: what is no loss of the device is no failure
 * of the fill. */
static int hip_fill_ring(void *user, uint64_t at, const uint8_t *ring, uint64_t bytes, bool *out_done) {
  hip_fill *fill = user;
  uint8_t aligned[GM__FILL_PATTERN_MAX]; /* the ring, as it lies from a multiple of 16 on */
  gm_error why;
  const hipFunction_t kernel = gm__hip_program_fill(fill->device);
  *out_done = false;
  if (!kernel) return 0;
  for (uint64_t i = 0; i < sizeof aligned; i++) aligned[(at + i) % sizeof aligned] = ring[i];
  const hipError_t code = hip_fill_launch(fill, kernel, at, bytes, aligned);
  *out_done = code == hipSuccess;
  if (code == hipSuccess || gm__hip_status((int)code) == GM_ERR_DEVICE_LOST) return (int)code;
  gm__hip_fail(&why, code, fill->op);
  gm__hip_program_refuse(fill->device, &why);
  return 0;
}

gm_status gm__hip_fill(void *device, void *stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                       const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err) {
  gm__hip_job job;
  if (!gm__fill_pattern_ok(pattern_bytes)) {
    return gm__bad_argument(err, "hipMemsetD32Async", "`pattern_bytes` must be 1, 2, 4, 8 or 16, is %u",
                            (unsigned)pattern_bytes);
  }
  const gm_status status = gm__hip_begin(device, stream, &job, err);
  if (status != GM_OK) return status;
  hip_fill fill = {.device = device, .stream = job.stream, .op = "hipMemsetD32Async"};
  const gm__fill_target target = {.user = &fill,
                                  .set_bytes = hip_fill_bytes,
                                  .set_words = hip_fill_words,
                                  .copy = hip_fill_copy,
                                  .set_ring = hip_fill_ring};
  const int code = gm__fill_run(&target, dst->address + offset, bytes, pattern, pattern_bytes);
  return gm__hip_end(device, &job, (hipError_t)code, fill.op, out, err);
}
