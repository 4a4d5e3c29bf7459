#include "core/device/turn.h"

/* Invariant: a turn is in the list from begin to end. Whatever lets another one come to the front wakes all. */

void gm__turn_begin(gm_device *device, gm__turn *turn, const void *pool) {
  *turn = (gm__turn){.pool = pool};
  gm__mutex_lock(&device->turn_lock);
  gm__turn **at = &device->turns;
  while (*at) at = &(*at)->next;
  *at = turn;
  atomic_fetch_add_explicit(&device->turn_count, 1, memory_order_relaxed);
  gm__mutex_unlock(&device->turn_lock);
}

void gm__turn_end(gm_device *device, gm__turn *turn) {
  gm__mutex_lock(&device->turn_lock);
  gm__turn **at = &device->turns;
  while (*at != turn) at = &(*at)->next;
  *at = turn->next;
  atomic_fetch_sub_explicit(&device->turn_count, 1, memory_order_relaxed);
  gm__cond_broadcast(&device->turn_moved);
  gm__mutex_unlock(&device->turn_lock);
}

/* REQUIRES: turn lock. */
static bool turn_is_first(const gm_device *device, const gm__turn *turn) {
  const gm__turn *before = device->turns;
  while (before != turn && before->narrow && before->pool != turn->pool) before = before->next;
  return before == turn;
}

bool gm__turn_await(gm_device *device, const gm__turn *turn, uint64_t deadline) {
  bool in_time = true, first;
  gm__mutex_lock(&device->turn_lock);
  while (!(first = turn_is_first(device, turn)) && in_time) {
    in_time = gm__cond_wait_until(&device->turn_moved, &device->turn_lock, deadline);
  }
  gm__mutex_unlock(&device->turn_lock);
  return first;
}

bool gm__turns_wait_at(gm_device *device, const void *pool) {
  gm__mutex_lock(&device->turn_lock);
  const gm__turn *turn = device->turns;
  while (turn && turn->pool != pool) turn = turn->next;
  gm__mutex_unlock(&device->turn_lock);
  return turn != NULL;
}

void gm__turn_narrow(gm_device *device, gm__turn *turn, bool narrow) {
  gm__mutex_lock(&device->turn_lock);
  if (narrow && !turn->narrow) gm__cond_broadcast(&device->turn_moved);
  turn->narrow = narrow;
  gm__mutex_unlock(&device->turn_lock);
}
