#include "core/algo/size_class.h"

#include "gm/size.h"

/* Invariants: index 0 is size 0; sizes grow with the index; floor(b) <= ceil(b) <= floor(b) + 1; class_bytes(floor(b))
 * <= b <= class_bytes(ceil(b)). The first 2^bits classes are linear. Then each power of two is cut into 2^bits equal
 * steps. The index is the exponent and the leading bits of the size, side by side, as in a floating-point number. */

/* The n with 2^n <= bytes < 2^(n+1); bytes > 0. */
static uint32_t size_class_log2(uint64_t bytes) { return 63u - (uint32_t)__builtin_clzll(bytes); }

uint64_t gm_round_up_power_of_2(uint64_t bytes) {
  uint32_t n = gm_size_class(bytes);
  if (bytes == 0) return 0;
  return n < 64 ? UINT64_C(1) << n : UINT64_MAX;
}

uint32_t gm_size_class(uint64_t bytes) { return bytes <= 1 ? 0 : size_class_log2(bytes - 1) + 1; }

uint32_t gm__size_class_count(uint32_t bits) { return ((65 - bits) << bits) + 1; }

uint32_t gm__size_class_floor(uint64_t bytes, uint32_t bits) {
  if (bytes >> bits == 0) return (uint32_t)bytes;
  uint32_t shift = size_class_log2(bytes) - bits;
  return (shift << bits) + (uint32_t)(bytes >> shift);
}

uint64_t gm__size_class_bytes(uint32_t index, uint32_t bits) {
  if (index >> bits == 0) return index;
  uint32_t shift = (index >> bits) - 1;
  if (shift > 63 - bits) return UINT64_MAX;
  uint64_t leading = index - (shift << bits);
  return leading << shift;
}

uint32_t gm__size_class_ceil(uint64_t bytes, uint32_t bits) {
  uint32_t index = gm__size_class_floor(bytes, bits);
  return index + (gm__size_class_bytes(index, bits) < bytes);
}
