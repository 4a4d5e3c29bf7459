/* Repeatable random numbers for tests: splitmix64, the state is any number. */
#ifndef GM_TESTS_SUPPORT_RANDOM_H
#define GM_TESTS_SUPPORT_RANDOM_H

#include <stdint.h>

static inline uint64_t test_random(uint64_t *state) {
  uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* From 1 to `largest`, every magnitude equally likely. */
static inline uint64_t test_log_uniform(uint64_t *state, uint64_t largest) {
  uint32_t bits = 0;
  while (bits < 63 && largest >> (bits + 1)) bits++;
  uint64_t top = UINT64_C(1) << (test_random(state) % (bits + 1));
  uint64_t number = top + test_random(state) % top;
  return number > largest ? largest : number;
}

#endif
