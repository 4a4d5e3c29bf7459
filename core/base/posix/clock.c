#include "core/base/clock.h"

#include <time.h>

#include "core/base/cancel.h"

/* The call cannot fail: the clock exists, and `now` is valid. */
static uint64_t clock_read(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t gm__now_ns(void) { return clock_read(CLOCK_MONOTONIC); }

uint64_t gm__now_coarse_ns(void) {
#ifdef CLOCK_MONOTONIC_COARSE
  return clock_read(CLOCK_MONOTONIC_COARSE);
#else
  return clock_read(CLOCK_MONOTONIC);
#endif
}

void gm__sleep_ns(uint64_t ns) {
  GM__UNCANCELLED();
  const struct timespec time = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
  nanosleep(&time, NULL);
}
