/* Invariant. `users` has a number of users in its low bits. Above are the low bits of the tick at which there was one
 * again. So both change at a time, and a time with users is below two days; a longer one counts as none. */
#include "core/device/traffic.h"

#include <stdbool.h>

#include "core/device/device.h"

enum { TRAFFIC_TICK_BITS = 4 /* 16 ns */, TRAFFIC_USER_BITS = 20 };

static const uint64_t traffic_one_user = 1, traffic_users = (UINT64_C(1) << TRAFFIC_USER_BITS) - 1,
                      traffic_longest = UINT64_C(1) << (63 - TRAFFIC_USER_BITS);

static uint64_t traffic_since(uint64_t now) { return now >> TRAFFIC_TICK_BITS << TRAFFIC_USER_BITS; }

/* Ticks since there was a user again. A time that ended before it began is none. */
static uint64_t traffic_ticks(uint64_t users, uint64_t now) {
  const uint64_t ticks = (traffic_since(now) - (users & ~traffic_users)) >> TRAFFIC_USER_BITS;
  return ticks < traffic_longest ? ticks : 0;
}

void gm__traffic_count(gm_device *device, gm__traffic_way way, uint64_t bytes, uint64_t useful_bytes) {
  gm__traffic *traffic = &device->traffic;
  atomic_fetch_add_explicit(&traffic->bytes[way], bytes, memory_order_relaxed);
  atomic_fetch_add_explicit(&traffic->copies[way], 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&traffic->useful_bytes, useful_bytes, memory_order_relaxed);
}

void gm__traffic_begin(gm_device *device, uint64_t now) {
  gm__traffic *traffic = &device->traffic;
  uint64_t users = atomic_load_explicit(&traffic->users, memory_order_relaxed), next;
  do {
    next = users & traffic_users ? users + 1 : traffic_since(now) | traffic_one_user;
  } while (!atomic_compare_exchange_weak(&traffic->users, &users, next));
  atomic_fetch_add_explicit(&traffic->begun, 1, memory_order_relaxed);
}

void gm__traffic_end(gm_device *device, uint64_t now) {
  gm__traffic *traffic = &device->traffic;
  const uint64_t users = atomic_fetch_sub(&traffic->users, 1);
  const bool last = (users & traffic_users) == traffic_one_user;
  if (last) atomic_fetch_add(&traffic->ticks, traffic_ticks(users, now));
}

uint64_t gm__traffic_users(const gm_device *device, uint64_t now, uint64_t *out_ns) {
  const gm__traffic *traffic = &device->traffic;
  const uint64_t users = atomic_load(&traffic->users);
  uint64_t ticks = atomic_load(&traffic->ticks);
  if (users & traffic_users) ticks += traffic_ticks(users, now);
  *out_ns = ticks << TRAFFIC_TICK_BITS;
  return atomic_load(&traffic->begun);
}
