#include "core/base/clock.h"

#include <time.h>

uint64_t gm__now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail: the clock exists and `now` is ours */
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
