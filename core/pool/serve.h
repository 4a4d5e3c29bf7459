/* Serving futures: one try for each whose turn it is. Thread-safe. */
#ifndef GM_CORE_POOL_SERVE_H
#define GM_CORE_POOL_SERVE_H

#include "core/pool/pool.h"
#include "gm/future.h"

/* gm_future.state. */
enum {
  GM__FUTURE_DONE = 1,
  GM__FUTURE_WAITS = 2, /* in the queue; `callback`, `user` and `state` are under the device's turn_lock */
  GM__FUTURE_CALLS = 3  /* out of the queue, answered; its server runs the callback */
};

static inline uint32_t gm__future_state(const gm_future *future) {
  return __atomic_load_n(&future->state, __ATOMIC_ACQUIRE);
}

static inline void gm__future_set_state(gm_future *future, uint32_t state) {
  __atomic_store_n(&future->state, state, __ATOMIC_RELEASE);
}

/* Serves the futures of a device whose turn it is, each once. REQUIRES: no lock; the device does not close meanwhile.
 */
void gm__futures_serve(gm_device *device);

/* Like gm__futures_serve, for all devices of a context. */
void gm__futures_poll(gm_context *ctx);

/* Ends the futures of a pool that goes: INVALID and CANCELLED. REQUIRES: no lock. */
void gm__futures_end(gm_pool *pool);

#endif
