#include <string.h>

#include "backends/cuda/cuda_copy.h"
#include "core/base/error.h"

/* CUDA sets bytes, and words of four at a multiple of four. So single bytes go up to the first such place and after the
 * last one. A pattern of up to four bytes is one word, turned to where it begins; of a longer one the first period is
 * set word by word, and what is there is copied behind itself, twice as much each time. */

enum { CUDA_WORD = 4, CUDA_RING = 16 };

typedef struct cuda_fill {
  const gm__cuda_device *device;
  CUstream stream;
  uint8_t ring[2 * CUDA_RING]; /* the pattern from the first byte on, over and over: any turn of it is a slice */
  uint64_t start, at;          /* addresses: of the first byte, of the next to set */
} cuda_fill;

/* Single bytes, fewer than a word. */
static CUresult cuda_fill_bytes(cuda_fill *fill, uint64_t bytes) {
  CUresult code = CUDA_SUCCESS;
  for (uint64_t i = 0; i < bytes && code == CUDA_SUCCESS; i++, fill->at++) {
    const uint8_t value = fill->ring[(fill->at - fill->start) % CUDA_RING];
    code = fill->device->cu->cuMemsetD8Async(fill->at, value, 1, fill->stream);
  }
  return code;
}

static CUresult cuda_fill_words(cuda_fill *fill, uint64_t count) {
  unsigned int word;
  if (count == 0) return CUDA_SUCCESS;
  memcpy(&word, fill->ring + (fill->at - fill->start) % CUDA_RING, sizeof word);
  const CUresult code = fill->device->cu->cuMemsetD32Async(fill->at, word, (size_t)count, fill->stream);
  fill->at += count * CUDA_WORD;
  return code;
}

/* The next `bytes`; `alike`: all words of them are, so that one call sets them. */
static CUresult cuda_fill_range(cuda_fill *fill, uint64_t bytes, bool alike) {
  const uint64_t end = fill->at + bytes, head = (CUDA_WORD - fill->at % CUDA_WORD) % CUDA_WORD;
  CUresult code = cuda_fill_bytes(fill, head < bytes ? head : bytes);
  while (code == CUDA_SUCCESS && end - fill->at >= CUDA_WORD) {
    code = cuda_fill_words(fill, alike ? (end - fill->at) / CUDA_WORD : 1);
  }
  return code == CUDA_SUCCESS ? cuda_fill_bytes(fill, end - fill->at) : code;
}

static CUresult cuda_fill_double(const cuda_fill *fill, const gm_memory *dst, uint64_t offset, uint64_t done,
                                 uint64_t bytes) {
  CUresult code = CUDA_SUCCESS;
  while (done < bytes && code == CUDA_SUCCESS) {
    const uint64_t more = done < bytes - done ? done : bytes - done;
    const gm_copy_item item = {
        .src = dst, .src_offset = offset, .dst = dst, .dst_offset = offset + done, .bytes = more};
    code = gm__cuda_copy_enqueue(fill->device, fill->stream, &item);
    done += more;
  }
  return code;
}

/* The shortest period of the pattern: 1, 2, 4, 8 or 16. */
static uint32_t cuda_fill_period(const uint8_t *ring) {
  uint32_t period = 1;
  while (period < CUDA_RING && memcmp(ring, ring + period, CUDA_RING) != 0) period *= 2;
  return period;
}

static CUresult cuda_fill_run(cuda_fill *fill, const gm_memory *dst, uint64_t offset, uint64_t bytes) {
  const uint32_t period = cuda_fill_period(fill->ring);
  if (bytes == 0) return CUDA_SUCCESS;
  if (period == 1) return fill->device->cu->cuMemsetD8Async(fill->at, fill->ring[0], (size_t)bytes, fill->stream);
  if (period <= CUDA_WORD) return cuda_fill_range(fill, bytes, true);
  const uint64_t first = period < bytes ? period : bytes;
  const CUresult code = cuda_fill_range(fill, first, false);
  return code == CUDA_SUCCESS ? cuda_fill_double(fill, dst, offset, first, bytes) : code;
}

gm_status gm__cuda_fill(void *device, void *stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                        const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err) {
  gm__cuda_job job;
  cuda_fill fill = {.device = device, .start = dst->address + offset, .at = dst->address + offset};
  if (pattern_bytes == 0 || pattern_bytes > CUDA_RING || (pattern_bytes & (pattern_bytes - 1))) {
    return gm__bad_argument(err, "cuMemsetD32Async", "`pattern_bytes` must be 1, 2, 4, 8 or 16, is %u",
                            (unsigned)pattern_bytes);
  }
  for (size_t i = 0; i < sizeof fill.ring; i += pattern_bytes) memcpy(fill.ring + i, pattern, pattern_bytes);
  const gm_status status = gm__cuda_begin(device, stream, &job, err);
  if (status != GM_OK) return status;
  fill.stream = job.stream;
  return gm__cuda_end(device, &job, cuda_fill_run(&fill, dst, offset, bytes), "cuMemsetD32Async", out, err);
}
