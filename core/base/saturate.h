/* Unsigned 64-bit arithmetic for numbers from outside. It stops at 0 and at 2^64-1 instead of wrapping. */
#ifndef GM_CORE_BASE_SATURATE_H
#define GM_CORE_BASE_SATURATE_H

#include <stdint.h>

static inline uint64_t gm__add_sat(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

static inline uint64_t gm__sub_sat(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

static inline uint64_t gm__mul_sat(uint64_t a, uint64_t b) { return b && a > UINT64_MAX / b ? UINT64_MAX : a * b; }

/* REQUIRES: `by` is a number and at least 0. */
static inline uint64_t gm__scale_sat(uint64_t value, double by) {
  const double scaled = (double)value * by;
  return scaled < 0x1p64 ? (uint64_t)scaled : UINT64_MAX;
}

/* The least multiple of `unit` (not 0) that is not below `value`; UINT64_MAX where 64 bits hold none. */
static inline uint64_t gm__round_up(uint64_t value, uint64_t unit) {
  return gm__add_sat(value, (unit - value % unit) % unit);
}

static inline uint64_t gm__min(uint64_t a, uint64_t b) { return a < b ? a : b; }

static inline uint64_t gm__max(uint64_t a, uint64_t b) { return a > b ? a : b; }

#endif
