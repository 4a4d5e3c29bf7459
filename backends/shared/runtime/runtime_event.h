/* Events of the driver, as slots that points are made of (backends/shared/event_slots.h). */
#ifndef GM_BACKENDS_SHARED_RUNTIME_RUNTIME_EVENT_H
#define GM_BACKENDS_SHARED_RUNTIME_RUNTIME_EVENT_H

#include "backends/shared/runtime/runtime.h"

/* An unused slot, with a cached event where `with_event` asks for one. NULL: no host memory, which `err` says. */
gm__event_slot *gm__runtime_event_slot(gm__runtime_device *device, bool with_event, gm_error *err);

/* The point that the slot stands for now. */
gm_backend_point gm__runtime_event_point(gm__event_slot *slot);

/* Record a point on `stream`; the device is entered. */
gm_status gm__runtime_event_mark(gm__runtime_device *device, void *stream, gm_backend_point *out, gm_error *err);

/* Has the event passed? The device is entered. */
gm_status gm__runtime_event_ask(gm__runtime_device *device, void *event, bool *out, gm_error *err);

/* Destroy every event of gm's, with the device entered. */
void gm__runtime_events_destroy(gm__runtime_device *device);

#endif
