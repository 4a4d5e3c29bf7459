#include "backends/hip/hip_fill.h"

#include <string.h>

#include "backends/hip/hip_program.h"
#include "backends/hip/hip_status.h"
#include "backends/shared/fill_plan.h"

/* Each thread of the kernel sets 16 bytes at a time. Beyond FILL_BLOCKS, the threads go round. HIP takes fewer than
 * 2^32 threads in one dimension. */
enum { FILL_THREADS = 256, FILL_BLOCKS = 2048, FILL_PIECE = 16 };

static hipError_t hip_fill_launch(gm__runtime_fill_job *fill, hipFunction_t kernel, uint64_t at, uint64_t bytes,
                                  const uint8_t *aligned) {
  uint64_t halves[2];
  memcpy(halves, aligned, sizeof halves);
  void *parameters[] = {&at, &bytes, &halves[0], &halves[1]};
  const uint64_t wanted = bytes / FILL_PIECE / FILL_THREADS + 1;
  const unsigned blocks = wanted < FILL_BLOCKS ? (unsigned)wanted : FILL_BLOCKS;
  fill->op = "hipModuleLaunchKernel";
  return gm__hip_of(fill->device)
      ->hipModuleLaunchKernel(kernel, blocks, 1, 1, FILL_THREADS, 1, 1, 0, fill->stream, parameters, NULL);
}

int gm__hip_fill_ring(void *user, uint64_t at, const uint8_t *ring, uint64_t bytes, bool *out_done) {
  gm__runtime_fill_job *fill = user;
  gm__hip_device *device = (gm__hip_device *)fill->device;
  uint8_t aligned[GM__FILL_PATTERN_MAX]; /* the ring, as it lies from a multiple of 16 on */
  gm_error why;
  const hipFunction_t kernel = gm__hip_program_fill(device);
  *out_done = false;
  if (!kernel) return 0;
  for (uint64_t i = 0; i < sizeof aligned; i++) aligned[(at + i) % sizeof aligned] = ring[i];
  const int code = (int)hip_fill_launch(fill, kernel, at, bytes, aligned);
  *out_done = code == GM__RUNTIME_SUCCESS;
  if (*out_done || gm__code_find(&gm__hip_codes, code)->status == GM_ERR_DEVICE_LOST) return code;
  gm__code_fail(&gm__hip_codes, &why, code, fill->op);
  gm__hip_program_refuse(device, &why);
  return 0;
}
