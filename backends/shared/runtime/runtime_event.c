#include "backends/shared/runtime/runtime_event.h"

#include "core/base/error.h"

gm__event_slot *gm__runtime_event_slot(gm__runtime_device *device, bool with_event, gm_error *err) {
  gm__event_slot *slot = gm__event_slots_take(&device->events, with_event);
  if (!slot) {
    gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, device->api->name, "no host memory for the point's record");
  }
  return slot;
}

gm_backend_point gm__runtime_event_point(gm__event_slot *slot) {
  return (gm_backend_point){.handle = (uintptr_t)slot, .value = atomic_load(&slot->use)};
}

static gm_status event_record(gm__runtime_device *device, gm__event_slot *slot, void *stream, gm_error *err) {
  const gm__runtime *api = device->api;
  void *event = slot->event;
  if (!event) {
    const int code = api->event_create.call(device, &event);
    if (code != GM__RUNTIME_SUCCESS) return gm__runtime_fail(device, code, api->event_create.op, err);
    if (!event) return gm__runtime_nonsense(device, api->event_create.op, "gave no event", err);
    slot->event = event;
  }
  return gm__runtime_answer(device, api->event_record.call(device, stream, event), api->event_record.op, err);
}

gm_status gm__runtime_event_mark(gm__runtime_device *device, void *stream, gm_backend_point *out, gm_error *err) {
  gm__event_slot *slot = gm__runtime_event_slot(device, true, err);
  if (!slot) return GM_ERR_OUT_OF_HOST_MEMORY;
  const gm_status status = event_record(device, slot, stream, err);
  if (status == GM_OK) {
    *out = gm__runtime_event_point(slot);
    return GM_OK;
  }
  void *surplus = gm__event_slots_put(&device->events, slot);
  if (surplus) device->api->event_destroy.call(device, surplus);
  return status;
}

gm_status gm__runtime_event_ask(gm__runtime_device *device, void *event, bool *out, gm_error *err) {
  const gm__runtime_on *query = &device->api->event_query;
  const int code = query->call(device, event);
  if (code != GM__RUNTIME_SUCCESS && code != GM__RUNTIME_NOT_READY) {
    return gm__runtime_fail(device, code, query->op, err);
  }
  *out = code == GM__RUNTIME_SUCCESS;
  return GM_OK;
}

void gm__runtime_events_destroy(gm__runtime_device *device) {
  for (gm__event_slot *slot = device->events.all; slot; slot = slot->next) {
    if (slot->event && !slot->lent) device->api->event_destroy.call(device, slot->event);
  }
}
