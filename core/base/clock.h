/* Monotonic time and deadlines, in nanoseconds. Thread-safe. */
#ifndef GM_CORE_BASE_CLOCK_H
#define GM_CORE_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* As a time-out or a deadline: wait for ever. */
#define GM__NEVER UINT64_MAX

/* Time since some point in the past; never goes back, does not follow changes of the wall clock. */
uint64_t gm__now_ns(void);

/* The same clock as of its last tick, some milliseconds ago at most: a few nanoseconds instead of tens. */
uint64_t gm__now_coarse_ns(void);

/* The moment `timeout_ns` from now; GM__NEVER for GM__NEVER and for what does not fit. */
uint64_t gm__deadline_after(uint64_t timeout_ns);

/* Nanoseconds until `deadline`: 0 once it has passed, GM__NEVER for GM__NEVER. */
uint64_t gm__deadline_left(uint64_t deadline);

bool gm__deadline_passed(uint64_t deadline);

/* Sleep for about that long; a signal may end it before. */
void gm__sleep_ns(uint64_t ns);

#endif
