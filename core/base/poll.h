/* Polling, for objects that have no wait with a time limit. The pauses double from 20 µs to 1 ms: gm sees a short wait
 * end soon, and a long wait costs little.
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

/* Begin to poll. `deadline` comes from gm__deadline_after. */
gm__poll gm__poll_until(uint64_t deadline);

/* Sleep until the next look is due, at most until the deadline. False, at once, when the deadline has passed. */
bool gm__poll_again(gm__poll *poll);

/* Try to lock the mutex for `patience_ns`. False: it is not locked. */
bool gm__poll_lock(gm__mutex *mutex, uint64_t patience_ns);

#endif
