/* The requests that wait for memory of a device, in the order in which they came: those of threads, and futures.
 * Thread-safe. */
#ifndef GM_CORE_DEVICE_TURN_H
#define GM_CORE_DEVICE_TURN_H

#include <stdatomic.h>

#include "core/device/device.h"
#include "gm/future.h"

/* A turn is a gm_turn. That of a thread lies on its stack, that of a future in the future (`serves`). All members but
 * `pool`, `deadline` and `serves` are under the device's turn_lock:
 * - next: in the device's list, first come first;
 * - narrow: it waits for its pool alone, at the pool's cap or a quota. Only requests of that pool wait behind it;
 * - server: of a future: the thread that works on it (gm__turn_self). NULL: none;
 * - looked: of a future: when somebody last worked on it. */

/* How a thread's turn stands. */
typedef enum gm__standing {
  GM__TURN_LATE,  /* the deadline passed */
  GM__TURN_FIRST, /* nobody is before it */
  GM__TURN_BEHIND /* a future is before it, which somebody has to serve */
} gm__standing;

/* True if somebody waits. A request that may wait joins them. */
static inline bool gm__turns_wait(const gm_device *device) {
  return atomic_load_explicit(&device->turn_count, memory_order_relaxed) > 0;
}

/* Names the calling thread, for `server`. */
const void *gm__turn_self(void);

/* Puts a turn behind the others. False: it is in the list already. */
bool gm__turn_begin(gm_device *device, gm_turn *turn);
void gm__turn_end(gm_device *device, gm_turn *turn);

/* Like gm__turn_begin and gm__turn_end. REQUIRES: turn lock. */
bool gm__turn_has(const gm_device *device, const gm_turn *turn);
void gm__turn_remove(gm_device *device, gm_turn *turn);

/* Waits until a thread's turn is first, or behind a future. */
gm__standing gm__turn_await(gm_device *device, const gm_turn *turn, uint64_t deadline);

/* A future that has to be served: its turn has come, or its deadline has passed. The calling thread becomes its server.
 * Each one is given once to those that came `since` that moment. *out_first: its turn has come. NULL: there is none. */
gm_turn *gm__turn_pick(gm_device *device, uint64_t since, bool *out_first);

/* A future of that pool that nobody serves, or NULL. The calling thread becomes its server. *out_busy: another thread
 * serves one of them. */
gm_turn *gm__turn_pick_of(gm_device *device, const void *pool, bool *out_busy);

/* The turn waits on: `narrow` says for what. A future has no server then. */
void gm__turn_put(gm_device *device, gm_turn *turn, bool narrow);

/* True if a request to that pool waits. */
bool gm__turns_wait_at(gm_device *device, const void *pool);

#endif
