/* Whether a pool's guard still has work under way: before streams and pools close. */
#include "core/base/clock.h"
#include "core/base/poll.h"
#include "core/pool/guard_record.h"

/* Of all records that no thread is at work on; *turn: of later ones nobody has a point of an earlier time. */
static bool guard_points_passed(gm_pool *pool, uint64_t *turn) {
  gm__guard *guard = pool->guard;
  bool passed = true;
  for (gm__guard_record *record = guard->out.first; record; record = record->next) {
    passed &= !record->looked_at && gm__guard_passed(pool, record, 0);
  }
  for (gm__guard_record *record = guard->leaving.first; record; record = record->next) {
    passed &= gm__guard_passed(pool, record, 0);
  }
  *turn = guard->turns;
  return passed;
}

/* Is a thread at work on a record since that time, or one it looks at? */
static bool guard_works_since(const gm__guard *guard, uint64_t turn) {
  bool looks = false;
  for (const gm__guard_record *record = guard->out.first; record && !looks; record = record->next) {
    looks = record->looked_at;
  }
  return looks || (guard->at_work.first && guard->at_work.first->turn <= turn);
}

bool gm__guard_is_idle(gm_pool *pool) {
  gm__guard *guard = pool->guard;
  uint64_t turn;
  gm__mutex_lock(&guard->lock);
  const bool idle = guard_points_passed(pool, &turn) && !guard->at_work.first;
  gm__mutex_unlock(&guard->lock);
  return idle;
}

bool gm__guard_drained(gm_pool *pool) {
  gm__guard *guard = pool->guard;
  uint64_t turn = UINT64_MAX, now;
  bool done = false;
  for (gm__poll poll = gm__poll_until(gm__deadline_after(GM__GUARD_PATIENCE_NS)); !done;) {
    gm__mutex_lock(&guard->lock);
    guard_points_passed(pool, &now);
    if (turn == UINT64_MAX) turn = now;
    done = !guard_works_since(guard, turn);
    gm__mutex_unlock(&guard->lock);
    if (!done && !gm__poll_again(&poll)) break;
  }
  gm__guard_reap(pool, false);
  return done;
}
