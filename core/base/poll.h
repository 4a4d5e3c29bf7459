/* Looking again and again at what has no wait with a limit: pauses that double from 20 µs up to 1 ms, so that what
 * passes soon is seen soon and what takes long costs little.
 *
 *   for (gm__poll poll = gm__poll_until(deadline);;) {
 *     ... look, and return when it is done ...
 *     if (!gm__poll_again(&poll)) return ... the time is up ...;
 *   } */
#ifndef GM_CORE_BASE_POLL_H
#define GM_CORE_BASE_POLL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/thread.h"

typedef struct gm__poll {
  uint64_t deadline, pause_ns; /* the next pause */
} gm__poll;

/* `deadline` of gm__deadline_after. */
gm__poll gm__poll_until(uint64_t deadline);

/* Sleeps until the next look is due, at most until the deadline; false, at once, when that has passed. */
bool gm__poll_again(gm__poll *poll);

/* Lock the mutex within so many nanoseconds; false: it is not locked. */
bool gm__poll_lock(gm__mutex *mutex, uint64_t patience_ns);

#endif
