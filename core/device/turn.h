/* The requests that wait for memory of a device, in the order in which they came. Thread-safe. */
#ifndef GM_CORE_DEVICE_TURN_H
#define GM_CORE_DEVICE_TURN_H

#include <stdatomic.h>

#include "core/device/device.h"

/* One that waits. It lies on the stack of its thread. */
typedef struct gm__turn {
  struct gm__turn *next; /* in the device's list, first come first: under its turn_lock, with `narrow` */
  const void *pool;
  bool
      narrow; /* it waits for its pool alone, at the pool's cap or a quota: only requests of that pool wait behind it */
} gm__turn;

/* True if somebody waits. A request that may wait joins them. */
static inline bool gm__turns_wait(const gm_device *device) {
  return atomic_load_explicit(&device->turn_count, memory_order_relaxed) > 0;
}

void gm__turn_begin(gm_device *device, gm__turn *turn, const void *pool);
void gm__turn_end(gm_device *device, gm__turn *turn);

/* Waits until nobody is before it. False: the deadline passed before that. */
bool gm__turn_await(gm_device *device, const gm__turn *turn, uint64_t deadline);

/* True if a request to that pool waits. */
bool gm__turns_wait_at(gm_device *device, const void *pool);

/* Says what the turn waits for. */
void gm__turn_narrow(gm_device *device, gm__turn *turn, bool narrow);

#endif
