/* Watches of pressure: callbacks that hear when the level of a memory changes. gm calls them outside of all locks.
 * Thread-safe. */
#ifndef GM_CORE_DEVICE_WATCH_H
#define GM_CORE_DEVICE_WATCH_H

#include "core/device/device.h"
#include "core/device/pressure.h"

/* The watched objects, and those that are told. */
typedef struct gm__watched {
  gm_pressure_scope scope;
  gm_context *ctx;
  gm_device *device; /* whose growth makes gm look; NULL: nobody's */
  void *subject;
  _Atomic uint32_t *guests; /* counts the watch, so that `subject` stays */
  gm__pressure_read read;
  gm_pressure_callback callback;
  void *user;
} gm__watched;

/* INVALID_ARGUMENT: `out` or the callback is NULL. OUT_OF_HOST_MEMORY. */
gm_status gm__watch_begin(const gm__watched *what, const char *op, gm_pressure_watch **out, gm_error *err);

/* Makes the context's list of watches, if it has none yet. Objects that are registered with the context later are
 * destroyed before the list. OUT_OF_HOST_MEMORY. */
gm_status gm__watches_prepare(gm_context *ctx, const char *op, gm_error *err);

/* Looks at the watches with that device, or at all for NULL. Returns the first failure. REQUIRES: no lock. */
gm_status gm__watches_look(gm_context *ctx, const gm_device *device, gm_error *err);

/* A subject goes although it is watched: nobody looks at it any more. Its watches are still to be ended. REQUIRES: no
 * lock. */
void gm__watches_forget(gm_context *ctx, const void *subject);

/* A request took new driver memory, or there is too little for it. REQUIRES: no lock. */
static inline void gm__watches_hear(const gm_device *device) {
  if (atomic_load_explicit(&device->watches, memory_order_relaxed)) gm__watches_look(device->ctx, device, NULL);
}

#endif
