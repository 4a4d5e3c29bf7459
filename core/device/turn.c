#include "core/device/turn.h"

#include "core/base/clock.h"
#include "core/base/thread_here.h"

/* Invariant: a turn is in the list from begin to end. Whatever lets another one come to the front wakes all. A future
 * with a server is in the list, so its pool and its device stay. */

const void *gm__turn_self(void) { return &gm__here; }

bool gm__turn_has(const gm_device *device, const gm_turn *turn) {
  const gm_turn *at = device->turns;
  while (at && at != turn) at = at->next;
  return at != NULL;
}

bool gm__turn_begin(gm_device *device, gm_turn *turn) {
  gm__mutex_lock(&device->turn_lock);
  gm_turn **at = &device->turns;
  while (*at && *at != turn) at = &(*at)->next;
  const bool joins = !*at;
  if (joins) {
    turn->next = NULL;
    *at = turn;
    atomic_fetch_add_explicit(&device->turn_count, 1, memory_order_relaxed);
  }
  gm__mutex_unlock(&device->turn_lock);
  return joins;
}

void gm__turn_remove(gm_device *device, gm_turn *turn) {
  gm_turn **at = &device->turns;
  while (*at != turn) at = &(*at)->next;
  *at = turn->next;
  atomic_fetch_sub_explicit(&device->turn_count, 1, memory_order_relaxed);
  gm__cond_broadcast(&device->turn_moved);
}

void gm__turn_end(gm_device *device, gm_turn *turn) {
  gm__mutex_lock(&device->turn_lock);
  gm__turn_remove(device, turn);
  gm__mutex_unlock(&device->turn_lock);
}

/* REQUIRES: turn lock. */
static bool turn_is_first(const gm_device *device, const gm_turn *turn) {
  const gm_turn *before = device->turns;
  while (before != turn && before->narrow && before->pool != turn->pool) before = before->next;
  return before == turn;
}

/* REQUIRES: turn lock. */
static bool turn_is_behind(const gm_device *device, const gm_turn *turn) {
  const gm_turn *before = device->turns;
  while (before != turn && !before->serves) before = before->next;
  return before != turn;
}

gm__standing gm__turn_await(gm_device *device, const gm_turn *turn, uint64_t deadline) {
  gm__standing standing = GM__TURN_LATE;
  gm__mutex_lock(&device->turn_lock);
  for (bool in_time = true; standing == GM__TURN_LATE && in_time;) {
    if (turn_is_first(device, turn)) {
      standing = GM__TURN_FIRST;
    } else if (turn_is_behind(device, turn)) {
      standing = GM__TURN_BEHIND;
    } else {
      in_time = gm__cond_wait_until(&device->turn_moved, &device->turn_lock, deadline);
    }
  }
  gm__mutex_unlock(&device->turn_lock);
  return standing;
}

gm_turn *gm__turn_pick(gm_device *device, uint64_t since, bool *out_first) {
  const uint64_t now = gm__now_ns();
  gm__mutex_lock(&device->turn_lock);
  gm_turn *turn = device->turns;
  for (; turn; turn = turn->next) {
    if (!turn->serves || turn->server || turn->looked >= since) continue;
    *out_first = turn_is_first(device, turn);
    if (*out_first || turn->deadline <= now) break;
  }
  if (turn) {
    turn->server = gm__turn_self();
    turn->looked = now;
  }
  gm__mutex_unlock(&device->turn_lock);
  return turn;
}

gm_turn *gm__turn_pick_of(gm_device *device, const void *pool, bool *out_busy) {
  *out_busy = false;
  gm__mutex_lock(&device->turn_lock);
  gm_turn *turn = device->turns;
  for (; turn; turn = turn->next) {
    if (!turn->serves || turn->pool != pool) continue;
    if (!turn->server) break;
    *out_busy |= turn->server != gm__turn_self();
  }
  if (turn) turn->server = gm__turn_self();
  gm__mutex_unlock(&device->turn_lock);
  return turn;
}

void gm__turn_put(gm_device *device, gm_turn *turn, bool narrow) {
  gm__mutex_lock(&device->turn_lock);
  if (narrow && !turn->narrow) gm__cond_broadcast(&device->turn_moved);
  turn->narrow = narrow;
  turn->server = NULL;
  gm__mutex_unlock(&device->turn_lock);
}

bool gm__turns_wait_at(gm_device *device, const void *pool) {
  gm__mutex_lock(&device->turn_lock);
  const gm_turn *turn = device->turns;
  while (turn && turn->pool != pool) turn = turn->next;
  gm__mutex_unlock(&device->turn_lock);
  return turn != NULL;
}
