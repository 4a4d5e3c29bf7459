#include "core/base/clock.h"

uint64_t gm__deadline_after(uint64_t timeout_ns) {
  uint64_t now = gm__now_ns();
  return timeout_ns < GM__NEVER - now ? now + timeout_ns : GM__NEVER;
}

uint64_t gm__deadline_left(uint64_t deadline) {
  if (deadline == GM__NEVER) return GM__NEVER;
  uint64_t now = gm__now_ns();
  return now < deadline ? deadline - now : 0;
}

bool gm__deadline_passed(uint64_t deadline) { return gm__deadline_left(deadline) == 0; }
