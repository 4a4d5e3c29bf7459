#include "backends/shared/runtime/runtime_device.h"

#include "backends/shared/native.h"
#include "backends/shared/runtime/runtime_entries.h"
#include "backends/shared/runtime/runtime_event.h"
#include "backends/shared/runtime/runtime_native.h"
#include "backends/shared/runtime/runtime_program.h"
#include "backends/shared/runtime/runtime_stream.h"
#include "backends/shared/vmm_try.h"
#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/sized.h"

/* Invariant: nothing is created or destroyed at the driver under `lock`. */

gm_status gm__runtime_device_count(void *driver, uint32_t *out, gm_error *err) {
  (void)err;
  *out = ((gm__runtime_driver *)driver)->count;
  return GM_OK;
}

static gm_status device_check(const gm__runtime_driver *driver, uint32_t index, gm_error *err) {
  if (index < driver->count) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_FOUND, driver->api->name, "there is no %s device %u: %u are listed",
                  driver->api->shown, (unsigned)index, (unsigned)driver->count);
}

gm_status gm__runtime_device_info(void *driver, uint32_t index, void *device, gm_device_info *out, gm_error *err) {
  if (device) {
    *out = ((gm__runtime_device *)device)->info;
    return GM_OK;
  }
  const gm_status status = device_check(driver, index, err);
  if (status == GM_OK) *out = ((gm__runtime_driver *)driver)->infos[index];
  return status;
}

/* On an old driver this query ends a capture in the same thread. So gm does not ask while the engine captures on a
 * stream that gm knows. */
static void device_ask(gm__runtime_device *device, gm_raw_figures *out) {
  gm__runtime_scope scope;
  size_t room = 0, total = 0;
  if (gm__runtime_enter(device, &scope, NULL) != GM_OK) {
    out->driver = (gm_raw_reply){.state = GM_RAW_ERROR, .code = atomic_load(&device->lost)};
    return;
  }
  if (gm__runtime_capture_check(device, NULL) == GM_OK) {
    const int code = device->api->memory_room(device, &room, &total);
    out->driver.state = code == GM__RUNTIME_SUCCESS ? GM_RAW_OK : GM_RAW_ERROR;
    out->driver.code = code;
    out->driver.total_bytes = total;
    out->driver.free_bytes = room;
  }
  gm__runtime_leave(device, &scope);
}

gm_status gm__runtime_device_figures(void *driver, uint32_t index, void *device, gm_raw_figures *out, gm_error *err) {
  const gm__runtime_driver *owner = driver;
  if (device) {
    gm__runtime_device *opened = device;
    opened->api->figures(opened->driver, &opened->info, out);
    device_ask(opened, out);
    return GM_OK;
  }
  const gm_status status = device_check(owner, index, err);
  if (status == GM_OK) owner->api->figures(owner, &owner->infos[index], out);
  return status;
}

gm_status gm__runtime_device_make(gm__runtime_driver *driver, uint32_t index, gm__runtime_device **out, gm_error *err) {
  const gm__runtime *api = driver->api;
  const gm_status status = device_check(driver, index, err);
  if (status != GM_OK) return status;
  gm__runtime_device *device = gm__alloc(driver->services, api->device_bytes);
  if (!device) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, api->name, "no host memory for the device's record");
  device->driver = driver;
  device->api = api;
  device->services = driver->services;
  device->info = driver->infos[index];
  device->ordinal = (int)index;
  atomic_init(&device->own_stream, NULL);
  atomic_init(&device->lost, 0);
  gm__mutex_init(&device->lock, GM__RANK_BACKEND);
  gm__event_slots_init(&device->events, device->services);
  gm__map_init(&device->peers, device->services);
  gm__map_init(&device->registered, device->services);
  gm__vmm_table_init(&device->mapped, device->services, driver->ops);
  gm__runtime_programs_open(device);
  if (api->device_init) api->device_init(device);
  *out = device;
  return GM_OK;
}

void gm__runtime_device_discard(gm__runtime_device *device) {
  if (device->api->device_clear) device->api->device_clear(device);
  gm__map_clear(&device->peers);
  gm__map_clear(&device->registered);
  gm__vmm_table_clear(&device->mapped);
  gm__event_slots_clear(&device->events);
  gm__mutex_destroy(&device->lock);
  gm__release(device->services, device, device->api->device_bytes);
}

void gm__runtime_device_try(gm__runtime_device *device) {
  gm__vmm_try(device->driver->ops, device, &device->info);
  if (device->api->share_kinds(device->driver, device->ordinal, &device->info)) return;
  device->info.capabilities &= ~(uint64_t)GM_CAP_SHARE;
}

static void device_empty(gm__runtime_device *device) {
  const gm__runtime *api = device->api;
  gm__runtime_scope scope;
  if (gm__runtime_enter(device, &scope, NULL) != GM_OK) return;
  void *stream = atomic_load(&device->own_stream);
  if (stream) {
    api->stream_sync.call(device, stream);
    api->stream_destroy.call(device, stream);
  }
  gm__runtime_programs_unload(device);
  gm__runtime_events_destroy(device);
  gm__runtime_leave(device, &scope);
}

void gm__runtime_device_close(void *device, gm_close_mode mode) {
  gm__runtime_device *closing = device;
  if (!closing) return;
  if (mode == GM_CLOSE_NORMAL) {
    device_empty(closing);
    if (closing->api->device_drop) closing->api->device_drop(closing);
  }
  gm__runtime_device_discard(closing);
}

/* An error of the device's shows in every call, also in one that only looks. */
gm_status gm__runtime_device_state(void *device, gm_error *err) {
  gm__runtime_device *opened = device;
  const gm__runtime_on *query = &opened->api->stream_query;
  gm__runtime_scope scope;
  const gm_status status = gm__runtime_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  const int code = query->call(opened, atomic_load(&opened->own_stream));
  gm__runtime_leave(opened, &scope);
  const gm__code *found = gm__code_find(opened->api->codes, code);
  if (code != GM__RUNTIME_UNKNOWN && found->status != GM_ERR_DEVICE_LOST) return GM_OK;
  int32_t none = 0;
  atomic_compare_exchange_strong(&opened->lost, &none, code);
  return gm__runtime_fail(opened, code, query->op, err);
}

gm_status gm__runtime_device_native(void *device, gm_native_device *out, gm_error *err) {
  const gm__runtime_device *opened = device;
  const gm__runtime *api = opened->api;
  gm__runtime_native_device native = {.head = *out};
  const gm_status status = gm__native_check(out, sizeof native, api->api, api->name, "out", err);
  if (status != GM_OK) return status;
  native.context = (uintptr_t)opened->context;
  native.ordinal = opened->ordinal;
  gm__sized_out(out, &native, sizeof native);
  return GM_OK;
}

gm_status gm__runtime_device_call(void *device, gm_status (*call)(void *user, gm_error *err), void *user,
                                  gm_error *err) {
  gm__runtime_scope scope;
  gm_status status = gm__runtime_enter(device, &scope, err);
  if (status != GM_OK) return status;
  status = call(user, err);
  gm__runtime_leave(device, &scope);
  return status;
}
