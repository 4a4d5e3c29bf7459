#include "bench/measure/ticks.h"

#include <stdlib.h>

enum { TICKS_CALIBRATION_NS = 20000000, TICKS_ROUNDS = 1000 };

ticks_scale ticks_calibrate(void) {
  ticks_scale scale = {.overhead = UINT64_MAX};
  uint64_t begin_ns = ticks_ns(), begin = ticks_now(), now_ns;
  do now_ns = ticks_ns();
  while (now_ns - begin_ns < TICKS_CALIBRATION_NS);
  scale.per_ns = (double)(ticks_now() - begin) / (double)(now_ns - begin_ns);
  for (int i = 0; i < TICKS_ROUNDS; i++) {
    uint64_t before = ticks_now(), took = ticks_now() - before;
    if (took < scale.overhead) scale.overhead = took;
  }
  return scale;
}

static int ticks_compare(const void *a, const void *b) {
  uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
  return left < right ? -1 : left > right;
}

double ticks_quantile(const ticks_scale *scale, uint32_t *values, size_t count, double part) {
  if (count == 0) return 0;
  qsort(values, count, sizeof *values, ticks_compare);
  uint64_t ticks = values[(size_t)((double)(count - 1) * part)];
  return ticks > scale->overhead ? (double)(ticks - scale->overhead) / scale->per_ns : 0;
}
