#include <string.h>

#include "core/staging/convert.h"
#include "core/staging/convert_numbers.h"

/* Only integers round: a float operation would round as the thread says. The one product below is exact. */

/* --- one element --- */

static uint16_t convert_bf16_of(uint32_t fp32) {
  if ((fp32 & ~CONVERT_SIGN) > CONVERT_INFINITY) return (uint16_t)(fp32 >> 16 | 0x40u);
  return (uint16_t)((fp32 + 0x7fffu + (fp32 >> 16 & 1u)) >> 16);
}

/* Numbers below 2^-14 count in steps of 2^-24: the significand loses `drop` bits. */
static uint32_t convert_fp16_small(uint32_t magnitude) {
  const uint32_t exponent = magnitude >> 23, drop = exponent < 101 ? 25 : 126 - exponent;
  const uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
  return (significand + (1u << (drop - 1)) - 1 + (significand >> drop & 1u)) >> drop;
}

static uint16_t convert_fp16_of(uint32_t fp32) {
  const uint32_t sign = fp32 >> 16 & 0x8000u, magnitude = fp32 & ~CONVERT_SIGN;
  if (magnitude > CONVERT_INFINITY) return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x1ffu));
  if (magnitude >= CONVERT_FP16_TOO_LARGE) return (uint16_t)(sign | 0x7c00u);
  if (magnitude < CONVERT_FP16_LEAST) return (uint16_t)(sign | convert_fp16_small(magnitude));
  return (uint16_t)(sign | (magnitude - CONVERT_FP16_BIAS + 0xfffu + (magnitude >> 13 & 1u)) >> 13);
}

static uint32_t convert_fp32_of(uint16_t fp16) {
  const uint32_t sign = (fp16 & 0x8000u) << 16, magnitude = fp16 & 0x7fffu;
  if (magnitude > 0x7c00u) return sign | CONVERT_INFINITY | 0x400000u | (magnitude & 0x3ffu) << 13;
  if (magnitude == 0x7c00u) return sign | CONVERT_INFINITY;
  if (magnitude >= 0x400u) return sign | ((magnitude << 13) + CONVERT_FP16_BIAS);
  const float small = (float)magnitude * 0x1p-24f;
  uint32_t bits;
  memcpy(&bits, &small, sizeof bits);
  return sign | bits;
}

/* --- an array, one by one --- */

#define CONVERT_SCALAR(name, from_type, to_type, one)                      \
  static void name(void *to, const void *from, size_t count) {             \
    for (size_t i = 0; i < count; i++) {                                   \
      from_type in;                                                        \
      memcpy(&in, (const unsigned char *)from + i * sizeof in, sizeof in); \
      const to_type out = (to_type)one;                                    \
      memcpy((unsigned char *)to + i * sizeof out, &out, sizeof out);      \
    }                                                                      \
  }

CONVERT_SCALAR(scalar_bf16_from_fp32, uint32_t, uint16_t, convert_bf16_of(in))
CONVERT_SCALAR(scalar_fp32_from_bf16, uint16_t, uint32_t, in << 16)
CONVERT_SCALAR(scalar_fp16_from_fp32, uint32_t, uint16_t, convert_fp16_of(in))
CONVERT_SCALAR(scalar_fp32_from_fp16, uint16_t, uint32_t, convert_fp32_of(in))

static void scalar_split(void *lower, void *upper, const void *from, size_t count) {
  for (size_t i = 0; i < count; i++) {
    uint16_t number;
    memcpy(&number, (const unsigned char *)from + 2 * i, sizeof number);
    const uint16_t turned = (uint16_t)(number << 1 | number >> 15);
    ((unsigned char *)lower)[i] = (unsigned char)turned;
    ((unsigned char *)upper)[i] = (unsigned char)(turned >> 8);
  }
}

static void scalar_join(void *to, const void *lower, const void *upper, size_t count) {
  const unsigned char *low = lower, *high = upper;
  for (size_t i = 0; i < count; i++) {
    const uint16_t turned = (uint16_t)(high[i] << 8 | low[i]), number = (uint16_t)(turned >> 1 | turned << 15);
    memcpy((unsigned char *)to + 2 * i, &number, sizeof number);
  }
}

const gm__convert_way gm__convert_scalar = {"scalar",
                                            scalar_bf16_from_fp32,
                                            scalar_fp32_from_bf16,
                                            scalar_fp16_from_fp32,
                                            scalar_fp32_from_fp16,
                                            scalar_split,
                                            scalar_join};
