#include "backends/cuda/cuda_copy.h"
#include "core/base/error.h"
#include "core/base/fill_plan.h"

typedef struct cuda_fill {
  const gm__cuda_device *device;
  CUstream stream;
  const gm_memory *dst;
  const char *op; /* the last call */
} cuda_fill;

static int cuda_fill_bytes(void *user, uint64_t at, uint8_t value, uint64_t count) {
  cuda_fill *fill = user;
  fill->op = "cuMemsetD8Async";
  return (int)fill->device->cu->cuMemsetD8Async(at, value, (size_t)count, fill->stream);
}

static int cuda_fill_words(void *user, uint64_t at, uint32_t word, uint64_t count) {
  cuda_fill *fill = user;
  fill->op = "cuMemsetD32Async";
  return (int)fill->device->cu->cuMemsetD32Async(at, word, (size_t)count, fill->stream);
}

static int cuda_fill_copy(void *user, uint64_t to, uint64_t from, uint64_t bytes) {
  cuda_fill *fill = user;
  const uint64_t first = fill->dst->address;
  fill->op = fill->dst->host ? "cuMemcpyAsync" : "cuMemcpyDtoDAsync";
  const gm_copy_item item = {
      .src = fill->dst, .src_offset = from - first, .dst = fill->dst, .dst_offset = to - first, .bytes = bytes};
  return (int)gm__cuda_copy_enqueue(fill->device, fill->stream, &item);
}

gm_status gm__cuda_fill(void *device, void *stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                        const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err) {
  gm__cuda_job job;
  if (!gm__fill_pattern_ok(pattern_bytes)) {
    return gm__bad_argument(err, "cuMemsetD32Async", "`pattern_bytes` must be 1, 2, 4, 8 or 16, is %u",
                            (unsigned)pattern_bytes);
  }
  const gm_status status = gm__cuda_begin(device, stream, &job, err);
  if (status != GM_OK) return status;
  cuda_fill fill = {.device = device, .stream = job.stream, .dst = dst, .op = "cuMemsetD32Async"};
  const gm__fill_target target = {
      .user = &fill, .set_bytes = cuda_fill_bytes, .set_words = cuda_fill_words, .copy = cuda_fill_copy};
  const int code = gm__fill_run(&target, dst->address + offset, bytes, pattern, pattern_bytes);
  return gm__cuda_end(device, &job, (CUresult)code, fill.op, out, err);
}
