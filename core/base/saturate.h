/* Unsigned 64-bit arithmetic that stops at 0 and at 2^64-1 instead of wrapping, for numbers that come from outside. */
#ifndef GM_CORE_BASE_SATURATE_H
#define GM_CORE_BASE_SATURATE_H

#include <stdint.h>

static inline uint64_t gm__add_sat(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

static inline uint64_t gm__sub_sat(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

static inline uint64_t gm__mul_sat(uint64_t a, uint64_t b) { return b && a > UINT64_MAX / b ? UINT64_MAX : a * b; }

/* `by` is at least 0 and a number. */
static inline uint64_t gm__scale_sat(uint64_t value, double by) {
  const double scaled = (double)value * by;
  return scaled < 0x1p64 ? (uint64_t)scaled : UINT64_MAX;
}

static inline uint64_t gm__min(uint64_t a, uint64_t b) { return a < b ? a : b; }

static inline uint64_t gm__max(uint64_t a, uint64_t b) { return a > b ? a : b; }

#endif
