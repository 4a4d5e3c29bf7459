#include "backends/hip/hip_fill.h"

#include <string.h>

#include "backends/shared/fill_plan.h"
#include "backends/shared/runtime/runtime_program.h"
#include "core/base/saturate.h"

/* Each thread of the kernel sets 16 bytes at a time. Beyond FILL_BLOCKS, the threads go round. HIP takes fewer than
 * 2^32 threads in one dimension. */
enum { FILL_THREADS = 256, FILL_BLOCKS = 2048, FILL_PIECE = 16 };

int gm__hip_fill_ring(void *user, uint64_t at, const uint8_t *ring, uint64_t bytes, bool *out_done) {
  gm__runtime_fill_job *fill = user;
  uint8_t aligned[GM__FILL_PATTERN_MAX] = {0}; /* the ring, as it lies from a multiple of 16 on */
  uint64_t halves[2];
  void *parameters[] = {&at, &bytes, &halves[0], &halves[1]};
  const uint64_t blocks = gm__min(bytes / FILL_PIECE / FILL_THREADS + 1, FILL_BLOCKS);
  for (uint64_t i = 0; i < sizeof aligned; i++) aligned[(at + i) % sizeof aligned] = ring[i];
  memcpy(halves, aligned, sizeof halves);
  const int code =
      gm__runtime_launch(fill->device, GM__RUNTIME_FILL, blocks, FILL_THREADS, fill->stream, parameters, out_done);
  if (code != GM__RUNTIME_SUCCESS) fill->op = fill->device->api->launch_op;
  return code;
}
