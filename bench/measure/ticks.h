/* Clocks: nanoseconds for whole runs, ticks for single events. */
#ifndef GM_BENCH_TICKS_H
#define GM_BENCH_TICKS_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

static inline uint64_t ticks_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The processor's own counter where it has one that costs little; nothing moves across it. */
static inline uint64_t ticks_now(void) {
#if defined(__x86_64__)
  unsigned core;
  uint64_t now = __rdtscp(&core);
  _mm_lfence();
  return now;
#else
  return ticks_ns();
#endif
}

typedef struct ticks_scale {
  double per_ns;
  uint64_t overhead; /* ticks that reading the counter twice takes, at the least */
} ticks_scale;

/* Takes 20 ms. */
ticks_scale ticks_calibrate(void);

/* Sorts. The value that `part` (0 to 1) of the values do not exceed, in nanoseconds; 0 for no values. */
double ticks_quantile(const ticks_scale *scale, uint32_t *values, size_t count, double part);

#endif
