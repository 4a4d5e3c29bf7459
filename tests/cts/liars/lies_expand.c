#include "cts/liars/lies_expand.h"

#include <string.h>

#include "cts/liars/lazy.h"
#include "cts/liars/lies_copy.h"

static uint32_t lies_from_half(uint32_t number) {
  const uint32_t sign = (number & 0x8000) << 16;
  uint32_t exponent = number >> 10 & 31, fraction = number & 0x3ff;
  if (exponent == 31) return sign | 0x7f800000 | fraction << 13 | (fraction ? 0x400000 : 0);
  if (!exponent && !fraction) return sign;
  for (exponent = exponent ? exponent : 1; number & 0x7c00 ? false : !(fraction & 0x400); exponent--) fraction <<= 1;
  return sign | (exponent + 112) << 23 | (fraction & 0x3ff) << 13;
}

static void lies_widen(unsigned char *to, const unsigned char *from, uint64_t count, gm_dtype type) {
  for (uint64_t i = 0; i < count; i++) {
    uint16_t number;
    memcpy(&number, from + 2 * i, sizeof number);
    const uint32_t wide = type == GM_DTYPE_F16 ? lies_from_half(number) : (uint32_t)number << 16;
    memcpy(to + 4 * i, &wide, sizeof wide);
  }
}

/* The queue runs empty first. */
gm_status lazy_expand(void *device, void *stream, const gm_memory *dst, uint64_t dst_offset, const gm_memory *src,
                      uint64_t src_offset, uint64_t count, gm_dtype from, gm_backend_point *out, gm_error *err) {
  const gm_status status = lazy_ops.stream_sync(device, stream, err);
  if (status) return status;
  lies_widen(liar_at(dst) + dst_offset, liar_at(src) + src_offset, count, from);
  return lazy_ops.copy_many(device, stream, NULL, 0, out, err);
}

/* Numbers below the smallest normal one become 0, as in a kernel that multiplies floats. */
gm_status liar_expand_flushes(void *device, void *stream, const gm_memory *dst, uint64_t dst_offset,
                              const gm_memory *src, uint64_t src_offset, uint64_t count, gm_dtype from,
                              gm_backend_point *out, gm_error *err) {
  const gm_status status = lazy_expand(device, stream, dst, dst_offset, src, src_offset, count, from, out, err);
  for (uint64_t i = 0; i < count && !status; i++) {
    const unsigned char *number = liar_at(src) + src_offset + 2 * i;
    const bool small = from == GM_DTYPE_F16 && !(number[1] & 0x7c);
    const unsigned char zero[4] = {0, 0, 0, number[1] & 0x80};
    if (small) memcpy(liar_at(dst) + dst_offset + 4 * i, zero, 4);
  }
  return status;
}

gm_status liar_expand_one_type(void *device, void *stream, const gm_memory *dst, uint64_t dst_offset,
                               const gm_memory *src, uint64_t src_offset, uint64_t count, gm_dtype from,
                               gm_backend_point *out, gm_error *err) {
  (void)from;
  return lazy_expand(device, stream, dst, dst_offset, src, src_offset, count, GM_DTYPE_BF16, out, err);
}

/* A thread takes two numbers. */
gm_status liar_expand_in_pairs(void *device, void *stream, const gm_memory *dst, uint64_t dst_offset,
                               const gm_memory *src, uint64_t src_offset, uint64_t count, gm_dtype from,
                               gm_backend_point *out, gm_error *err) {
  return lazy_expand(device, stream, dst, dst_offset, src, src_offset, count / 2 * 2, from, out, err);
}

/* The kernel does not wait for the copies before it. */
gm_status liar_expand_overtakes(void *device, void *stream, const gm_memory *dst, uint64_t dst_offset,
                                const gm_memory *src, uint64_t src_offset, uint64_t count, gm_dtype from,
                                gm_backend_point *out, gm_error *err) {
  lies_widen(liar_at(dst) + dst_offset, liar_at(src) + src_offset, count, from);
  return lazy_ops.copy_many(device, stream, NULL, 0, out, err);
}
