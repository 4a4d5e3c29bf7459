/* Monotonic time and deadlines, in nanoseconds. Thread-safe. */
#ifndef GM_CORE_BASE_CLOCK_H
#define GM_CORE_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/inner.h"

/* A time-out or a deadline that never comes. */
#define GM__NEVER UINT64_MAX

/* The time since some point in the past. It never goes back and ignores changes of the wall clock. */
GM__INNER uint64_t gm__now_ns(void);

/* The time of that clock at its last tick, at most some milliseconds ago. The call takes a few nanoseconds, not tens.
 */
uint64_t gm__now_coarse_ns(void);

/* The moment `timeout_ns` from now. GM__NEVER for GM__NEVER, and for a moment that does not fit. */
GM__INNER uint64_t gm__deadline_after(uint64_t timeout_ns);

/* Nanoseconds until `deadline`: 0 once it has passed, GM__NEVER for GM__NEVER. */
GM__INNER uint64_t gm__deadline_left(uint64_t deadline);

GM__INNER bool gm__deadline_passed(uint64_t deadline);

/* Sleep for about `ns`. A signal may end it earlier. */
GM__INNER void gm__sleep_ns(uint64_t ns);

#endif
