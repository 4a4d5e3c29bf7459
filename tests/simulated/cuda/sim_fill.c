/* cuMemset in its forms. */
#include "tests/simulated/cuda/sim_call.h"
#include "tests/simulated/cuda/sim_context.h"
#include "tests/simulated/cuda/sim_copy.h"
#include "tests/simulated/cuda/sim_range.h"
#include "tests/simulated/cuda/sim_stream.h"

typedef struct fill_op {
  sim_op op;
  uint64_t to, count;
  uint32_t value;
  unsigned width;
} fill_op;

static CUresult fill_run(sim_op *op, sim_queue *queue) {
  const fill_op *fill = (fill_op *)op;
  return sim_range_fill(queue->device, fill->to, fill->value, fill->width, fill->count);
}

/* Device memory is filled later, whatever the call; the forms without a stream go by the default stream. */
static CUresult fill_add(CUdeviceptr to, uint32_t value, unsigned width, size_t count, CUstream stream) {
  sim_queue *queue = NULL;
  CUresult result = sim_stream_queue(stream, &queue);
  if (result || !count) return result;
  if (count > SIZE_MAX / width || to % width || !sim_range_find(to) || !sim_range_ok(to, count * width))
    return CUDA_ERROR_INVALID_VALUE;
  fill_op *fill = sim_op_create(sizeof *fill);
  if (!fill) return CUDA_ERROR_OUT_OF_MEMORY;
  *fill = (fill_op){.op = fill->op, .to = to, .count = count, .value = value, .width = width};
  fill->op.run = fill_run;
  fill->op.link = sim_copy_link(queue->device, to, to, count * width);
  fill->op.link.entry.from = 0;
  return sim_queue_add(queue, &fill->op);
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
  CUresult result = sim_enter(sim_id_cuMemsetD8_v2);
  if (result) return result;
  return sim_leave(fill_add(to, value, 1, count, NULL));
}

CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
  CUresult result = sim_enter(sim_id_cuMemsetD16_v2);
  if (result) return result;
  return sim_leave(fill_add(to, value, 2, count, NULL));
}

CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count) {
  CUresult result = sim_enter(sim_id_cuMemsetD32_v2);
  if (result) return result;
  return sim_leave(fill_add(to, value, 4, count, NULL));
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  CUresult result = sim_enter(sim_id_cuMemsetD8Async);
  if (result) return result;
  return sim_leave(fill_add(to, value, 1, count, stream));
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  CUresult result = sim_enter(sim_id_cuMemsetD16Async);
  if (result) return result;
  return sim_leave(fill_add(to, value, 2, count, stream));
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  CUresult result = sim_enter(sim_id_cuMemsetD32Async);
  if (result) return result;
  return sim_leave(fill_add(to, value, 4, count, stream));
}
