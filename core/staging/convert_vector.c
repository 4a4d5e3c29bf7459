#include <string.h>

#include "core/staging/convert.h"
#include "core/staging/convert_numbers.h"

/* Four at a time by the compiler's vectors, which are NEON on arm64 and SSE2 on x86-64. Only integers round, as in
 * convert_scalar.c. */

typedef uint16_t convert_u16x4 __attribute__((vector_size(8)));
typedef uint32_t convert_u32x4 __attribute__((vector_size(16)));
typedef int32_t convert_i32x4 __attribute__((vector_size(16)));
typedef float convert_f32x4 __attribute__((vector_size(16)));

/* All bits of the lanes in which `a` is greater. Both are below 2^31: processors compare signed numbers faster. */
static inline convert_u32x4 vector_above(convert_u32x4 a, uint32_t b) {
  return (convert_u32x4)((convert_i32x4)a > (int32_t)b);
}

static inline convert_u32x4 vector_choose(convert_u32x4 mask, convert_u32x4 yes, convert_u32x4 no) {
  return (mask & yes) | (~mask & no);
}

static inline convert_u32x4 vector_bf16(convert_u32x4 in) {
  const convert_u32x4 upper = in >> 16, rounded = (in + 0x7fffu + (upper & 1u)) >> 16;
  return vector_choose(vector_above(in & ~CONVERT_SIGN, CONVERT_INFINITY), upper | 0x40u, rounded);
}

static inline convert_u32x4 vector_fp16_small(convert_u32x4 magnitude) {
  const convert_u32x4 exponent = magnitude >> 23, significand = (magnitude & 0x7fffffu) | 0x800000u;
  const convert_u32x4 normal = vector_above(exponent, 112), tiny = ~vector_above(exponent, 100);
  const convert_u32x4 most = {25, 25, 25, 25};
  const convert_u32x4 drop = vector_choose(normal | tiny, most, 126u - exponent), one = {1, 1, 1, 1};
  return (significand + (one << (drop - 1u)) - 1u + (significand >> drop & 1u)) >> drop;
}

static inline convert_u32x4 vector_fp16(convert_u32x4 in) {
  const convert_u32x4 magnitude = in & ~CONVERT_SIGN, infinity = {0x7c00, 0x7c00, 0x7c00, 0x7c00};
  convert_u32x4 out = (magnitude - CONVERT_FP16_BIAS + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  out = vector_choose(vector_above(magnitude, CONVERT_FP16_LEAST - 1), out, vector_fp16_small(magnitude));
  out = vector_choose(vector_above(magnitude, CONVERT_FP16_TOO_LARGE - 1), infinity, out);
  out = vector_choose(vector_above(magnitude, CONVERT_INFINITY), 0x7e00u | (magnitude >> 13 & 0x1ffu), out);
  return out | (in >> 16 & 0x8000u);
}

static inline convert_u32x4 vector_from_fp16(convert_u32x4 in) {
  const convert_u32x4 magnitude = in & 0x7fffu, wide = magnitude << 13;
  const convert_f32x4 small = __builtin_convertvector((convert_i32x4)magnitude, convert_f32x4) * 0x1p-24f;
  convert_u32x4 out = vector_choose(vector_above(magnitude, 0x3ff), wide + CONVERT_FP16_BIAS, (convert_u32x4)small);
  out = vector_choose(vector_above(magnitude, 0x7bff), wide | CONVERT_INFINITY, out);
  out |= vector_above(magnitude, 0x7c00) & 0x400000u;
  return out | (in & 0x8000u) << 16;
}

#define CONVERT_VECTOR(name, from_type, to_type, one, rest)                         \
  static void name(void *to, const void *from, size_t count) {                      \
    const unsigned char *at = from;                                                 \
    unsigned char *put = to;                                                        \
    size_t left = count;                                                            \
    for (; left >= 4; left -= 4, at += sizeof(from_type), put += sizeof(to_type)) { \
      from_type raw;                                                                \
      memcpy(&raw, at, sizeof raw);                                                 \
      const convert_u32x4 in = __builtin_convertvector(raw, convert_u32x4);         \
      const to_type out = __builtin_convertvector(one, to_type);                    \
      memcpy(put, &out, sizeof out);                                                \
    }                                                                               \
    gm__convert_scalar.rest(put, at, left);                                         \
  }

CONVERT_VECTOR(vector_bf16_from_fp32, convert_u32x4, convert_u16x4, vector_bf16(in), bf16_from_fp32)
CONVERT_VECTOR(vector_fp32_from_bf16, convert_u16x4, convert_u32x4, in << 16, fp32_from_bf16)
CONVERT_VECTOR(vector_fp16_from_fp32, convert_u32x4, convert_u16x4, vector_fp16(in), fp16_from_fp32)
CONVERT_VECTOR(vector_fp32_from_fp16, convert_u16x4, convert_u32x4, vector_from_fp16(in), fp32_from_fp16)

/* --- planes: 16 numbers at a time, where their bytes lie in the right order --- */

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
typedef uint16_t convert_u16x8 __attribute__((vector_size(16)));
typedef unsigned char convert_u8x16 __attribute__((vector_size(16)));

static inline convert_u8x16 vector_turn_left(const unsigned char *at) {
  convert_u16x8 numbers;
  memcpy(&numbers, at, sizeof numbers);
  return (convert_u8x16)(numbers << 1 | numbers >> 15);
}

static inline void vector_turn_right(convert_u8x16 turned, unsigned char *put) {
  const convert_u16x8 numbers = (convert_u16x8)turned >> 1 | (convert_u16x8)turned << 15;
  memcpy(put, &numbers, sizeof numbers);
}

static void vector_split(void *lower, void *upper, const void *from, size_t count) {
  unsigned char *put_low = lower, *put_high = upper;
  const unsigned char *at = from;
  for (; count >= 16; count -= 16, at += 32, put_low += 16, put_high += 16) {
    const convert_u8x16 a = vector_turn_left(at), b = vector_turn_left(at + 16);
    const convert_u8x16 low = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const convert_u8x16 high = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    memcpy(put_low, &low, sizeof low);
    memcpy(put_high, &high, sizeof high);
  }
  gm__convert_scalar.split(put_low, put_high, at, count);
}

static void vector_join(void *to, const void *lower, const void *upper, size_t count) {
  const unsigned char *at_low = lower, *at_high = upper;
  unsigned char *put = to;
  for (; count >= 16; count -= 16, put += 32, at_low += 16, at_high += 16) {
    convert_u8x16 low, high;
    memcpy(&low, at_low, sizeof low);
    memcpy(&high, at_high, sizeof high);
    vector_turn_right(__builtin_shufflevector(low, high, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23), put);
    vector_turn_right(__builtin_shufflevector(low, high, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31),
                      put + 16);
  }
  gm__convert_scalar.join(put, at_low, at_high, count);
}
#else
static void vector_split(void *lower, void *upper, const void *from, size_t count) {
  gm__convert_scalar.split(lower, upper, from, count);
}

static void vector_join(void *to, const void *lower, const void *upper, size_t count) {
  gm__convert_scalar.join(to, lower, upper, count);
}
#endif

const gm__convert_way gm__convert_vector = {"vector",
                                            vector_bf16_from_fp32,
                                            vector_fp32_from_bf16,
                                            vector_fp16_from_fp32,
                                            vector_fp32_from_fp16,
                                            vector_split,
                                            vector_join};
