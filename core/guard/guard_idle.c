/* Whether a guard still has work under way: asked before streams and pools close. */
#include "core/base/clock.h"
#include "core/base/poll.h"
#include "core/guard/guard_record.h"

/* Have the points passed of all records that no thread works on? *turn is the guard's clock now. REQUIRES: guard
 * lock. */
static bool guard_points_passed(gm__guard *guard, uint64_t *turn) {
  bool passed = true;
  for (gm__guard_record *record = guard->out.first; record; record = record->next) {
    passed &= !record->looked_at && gm__guard_passed(guard, record, 0);
  }
  for (gm__guard_record *record = guard->leaving.first; record; record = record->next) {
    passed &= gm__guard_passed(guard, record, 0);
  }
  *turn = guard->turns;
  return passed;
}

/* Does a thread look at a record, or work on one since `turn` or before? REQUIRES: guard lock. */
static bool guard_works_since(const gm__guard *guard, uint64_t turn) {
  bool looks = false;
  for (const gm__guard_record *record = guard->out.first; record && !looks; record = record->next) {
    looks = record->looked_at;
  }
  return looks || (guard->at_work.first && guard->at_work.first->turn <= turn);
}

bool gm__guard_is_idle(gm__guard *guard) {
  uint64_t turn;
  gm__mutex_lock(&guard->lock);
  const bool idle = guard_points_passed(guard, &turn) && !guard->at_work.first;
  gm__mutex_unlock(&guard->lock);
  return idle;
}

bool gm__guard_drained(gm__guard *guard) {
  uint64_t turn = UINT64_MAX, now;
  bool done = false;
  for (gm__poll poll = gm__poll_until(gm__deadline_after(GM__GUARD_PATIENCE_NS)); !done;) {
    gm__mutex_lock(&guard->lock);
    guard_points_passed(guard, &now);
    if (turn == UINT64_MAX) turn = now;
    done = !guard_works_since(guard, turn);
    gm__mutex_unlock(&guard->lock);
    if (!done && !gm__poll_again(&poll)) break;
  }
  gm__guard_reap(guard, false);
  return done;
}
