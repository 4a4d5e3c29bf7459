#include "core/base/poll.h"

#include "core/base/clock.h"

static const uint64_t poll_shortest_ns = 20000, poll_longest_ns = 1000000;

gm__poll gm__poll_until(uint64_t deadline) { return (gm__poll){.deadline = deadline, .pause_ns = poll_shortest_ns}; }

bool gm__poll_again(gm__poll *poll) {
  const uint64_t left = gm__deadline_left(poll->deadline);
  if (left == 0) return false;
  gm__sleep_ns(left < poll->pause_ns ? left : poll->pause_ns);
  poll->pause_ns = poll->pause_ns * 2 < poll_longest_ns ? poll->pause_ns * 2 : poll_longest_ns;
  return true;
}

bool gm__poll_lock(gm__mutex *mutex, uint64_t patience_ns) {
  for (gm__poll poll = gm__poll_until(gm__deadline_after(patience_ns));;) {
    if (gm__mutex_try_lock(mutex)) return true;
    if (!gm__poll_again(&poll)) return false;
  }
}
