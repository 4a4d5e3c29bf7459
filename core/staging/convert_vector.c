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

const gm__convert_way gm__convert_vector = {"vector", vector_bf16_from_fp32, vector_fp32_from_bf16,
                                            vector_fp16_from_fp32, vector_fp32_from_fp16};
