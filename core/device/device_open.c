/* A device's life. Invariants: a device counts in its context's children while it is open. own_bytes and pooled_bytes
 * are the part of the process-wide counter `used` that this object answers for; they go with it. */
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/device/peer.h"
#include "core/device/stream.h"
#include "core/discovery/answer.h"
#include "core/discovery/device_entry.h"
#include "core/discovery/device_figures.h"
#include "core/discovery/discovery.h"

static gm_status device_read_figures(void *owner, gm__room_question question, gm_memory_info *out) {
  const gm_device *device = owner;
  const gm__figures_subject subject = {.driver = device->driver,
                                       .info = &device->info,
                                       .device = device->handle,
                                       .managed = question == GM__ROOM_MANAGED,
                                       .no_look = question != GM__ROOM_LOOK};
  return gm__device_figures(&subject, out, NULL);
}

static gm_status device_read_types(gm_device *device, gm_error *err) {
  uint32_t count = 0;
  gm_status status = device->ops->memory_type_count(device->handle, &count, err);
  if (status != GM_OK) return status;
  if (count == 0 || count > GM__MAX_MEMORY_TYPES) {
    return gm__fail(err, GM_ERR_DRIVER, "memory_type_count", "backend %s claims %u memory types", device->info.backend,
                    count);
  }
  for (uint32_t i = 0; i < count && status == GM_OK; i++) {
    device->types[i].struct_size = sizeof device->types[i];
    status = device->ops->memory_type(device->handle, i, &device->types[i], err);
    if (status == GM_OK) status = gm__answer_check_type(device->info.backend, i, &device->types[i], err);
  }
  device->type_count = count;
  return status;
}

/* Everything about an open backend device that gm keeps. */
static gm_status device_fill(gm_device *device, uint32_t index, gm_error *err) {
  device->info.struct_size = sizeof device->info;
  gm_status status = device->ops->device_info(device->driver->handle, index, device->handle, &device->info, err);
  if (status != GM_OK) return status;
  gm__device_entry_clean(device->driver, index, &device->info);
  status = gm__answer_check_info(&device->info, err);
  if (status == GM_OK) status = device_read_types(device, err);
  if (status != GM_OK) return status;
  device->room.card = gm__device_card(device->driver, &device->info);
  device->room.adopted = device->adopted;
  return GM_OK;
}

/* A device object without a backend device yet. */
static gm_device *device_new(gm_context *ctx, gm__driver *driver, gm_error *err) {
  gm_device *device = gm__object_new(ctx, GM__KIND_DEVICE, sizeof *device);
  if (!device) {
    gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_device_open", "no host memory for a device");
    return NULL;
  }
  device->ctx = ctx;
  device->id = gm__context_next_id(ctx);
  device->driver = driver;
  device->ops = &driver->ops;
  gm__mutex_init(&device->trim_lock, GM__RANK_TRIM);
  gm__mutex_init(&device->lock, GM__RANK_DEVICE);
  gm__mutex_init(&device->share_lock, GM__RANK_SHARE);
  gm__mutex_init(&device->adopt_lock, GM__RANK_ADOPT);
  gm__mutex_init(&device->range_lock, GM__RANK_LEAF);
  gm__mutex_init(&device->evict_lock, GM__RANK_LEAF);
  gm__cond_init(&device->evict_done);
  gm__mutex_init(&device->turn_lock, GM__RANK_LEAF);
  gm__cond_init(&device->turn_moved);
  device->room.ctx = ctx;
  device->room.name = device->info.name;
  device->room.read = device_read_figures;
  device->room.owner = device;
  gm__room_init(&device->room);
  gm__map_init(&device->mapped, gm__context_services(ctx));
  return device;
}

static void device_release(gm_device *device, bool forked) {
  if (!forked) gm__driver_forget(device->driver, &device->at_driver);
  if (device->handle) device->ops->device_close(device->handle, forked ? GM_CLOSE_ABANDON : GM_CLOSE_NORMAL);
  if (!forked) {
    gm__mutex_destroy(&device->trim_lock);
    gm__mutex_destroy(&device->lock);
    gm__mutex_destroy(&device->share_lock);
    gm__mutex_destroy(&device->adopt_lock);
    gm__mutex_destroy(&device->range_lock);
    gm__mutex_destroy(&device->evict_lock);
    gm__cond_destroy(&device->evict_done);
    gm__mutex_destroy(&device->turn_lock);
    gm__cond_destroy(&device->turn_moved);
    gm__room_clear(&device->room);
  }
  gm__map_clear(&device->mapped);
  gm__device_release_streams(device);
  gm__object_end(device->ctx, &device->head);
}

static gm_status device_finish(gm_device *device, uint32_t index, gm_status status, gm_device **out, gm_error *err) {
  if (status == GM_OK) status = device_fill(device, index, err);
  if (status != GM_OK) {
    device_release(device, false);
    return status;
  }
  atomic_fetch_add(&device->ctx->children, 1);
  gm__driver_keep(device->driver, &device->at_driver, device->handle, &device->info);
  *out = device;
  return GM_OK;
}

static gm_status device_open_at(gm_context *ctx, gm__driver *driver, uint32_t index, gm_device **out, gm_error *err) {
  gm_device *device = device_new(ctx, driver, err);
  if (!device) return GM_ERR_OUT_OF_HOST_MEMORY;
  gm_status status = driver->ops.device_open(driver->handle, index, &device->handle, err);
  gm__error_of("gm_device_open", status, err);
  status = gm__answer_check_object(driver->info.name, "device_open", status, &device->handle, err);
  return device_finish(device, index, status, out, err);
}

static gm_status device_driver_named(gm_context *ctx, const char *op, const char *name, gm__driver **out,
                                     gm_error *err) {
  gm__registry *registry = NULL;
  gm_status status = gm__registry_get(ctx, &registry, err);
  if (status != GM_OK) return status;
  *out = gm__registry_find(registry, name);
  return *out ? GM_OK : gm__fail(err, GM_ERR_NOT_FOUND, op, "there is no backend \"%.15s\"", name);
}

/* The backend of that name, initialised and with its devices listed. */
static gm_status device_find_driver(gm_context *ctx, const char *op, const char *name, gm__driver **out,
                                    gm_error *err) {
  gm__driver *driver = NULL;
  gm_status status = device_driver_named(ctx, op, name, &driver, err);
  if (status != GM_OK) return status;
  status = gm__discover_driver(driver, GM_PROBE_ACTIVE, err);
  if (status != GM_OK) return status;
  gm__mutex_lock(&driver->lock);
  status = driver->info.status;
  if (status != GM_OK && err) *err = driver->info.reason;
  gm__mutex_unlock(&driver->lock);
  if (status == GM_OK) status = gm__discover_load(driver, err); /* discovery may have been in another process */
  if (status == GM_OK) *out = driver;
  return status;
}

static uint32_t device_find_index(gm__driver *driver, const gm_device_id *id) {
  gm__mutex_lock(&driver->lock);
  uint32_t found = UINT32_MAX;
  for (uint32_t i = 0; i < driver->entry_count && found == UINT32_MAX; i++) {
    if (gm__device_id_same(&driver->entries[i].id, id)) found = driver->entries[i].info.index;
  }
  gm__mutex_unlock(&driver->lock);
  return found;
}

gm_status gm_device_open(gm_context *ctx, const gm_device_id *id, gm_device **out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_device_open";
  gm_status status = gm__context_check(ctx, op, err);
  if (status != GM_OK) return status;
  if (!id || !out) return gm__bad_argument(err, op, "`%s` is NULL", id ? "out" : "id");
  if (memchr(id->backend, 0, sizeof id->backend) == NULL)
    return gm__bad_argument(err, op, "`id->backend` does not end");
  gm__driver *driver = NULL;
  status = device_find_driver(ctx, op, id->backend, &driver, err);
  if (status != GM_OK) return status;
  uint32_t index = device_find_index(driver, id);
  if (index == UINT32_MAX)
    return gm__fail(err, GM_ERR_NOT_FOUND, op, "backend %s has no device with this UUID", id->backend);
  return device_open_at(ctx, driver, index, out, err);
}

gm_status gm_device_open_index(gm_context *ctx, const char *backend, uint32_t index, gm_device **out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_device_open_index";
  gm_status status = gm__context_check(ctx, op, err);
  if (status != GM_OK) return status;
  if (!backend || !out) return gm__bad_argument(err, op, "`%s` is NULL", backend ? "out" : "backend");
  gm__driver *driver = NULL;
  status = device_find_driver(ctx, op, backend, &driver, err);
  if (status != GM_OK) return status;
  gm__mutex_lock(&driver->lock);
  const uint32_t count = driver->entry_count;
  gm__mutex_unlock(&driver->lock);
  if (index >= count) {
    return gm__fail(err, GM_ERR_NOT_FOUND, op, "backend %s has %u devices, there is no device %u", backend, count,
                    index);
  }
  return device_open_at(ctx, driver, index, out, err);
}

/* gm's own backend of an API comes first. Several registered backends may have one API: then only a name tells them
 * apart. */
static gm_status device_driver_of_api(gm_context *ctx, const char *op, gm_api api, gm__driver **out, gm_error *err) {
  gm__registry *registry = NULL;
  uint32_t count = 0;
  gm_status status = gm__registry_get(ctx, &registry, err);
  if (status != GM_OK) return status;
  gm__driver *driver = gm__registry_find(registry, gm_api_name(api));
  if (!driver || !driver->known || !driver->has_ops) driver = gm__registry_find_registered(registry, api, &count);
  if (count > 1) {
    return gm__bad_argument(err, op,
                            "`native` has api \"%s\", which %u registered backends have: gm_device_adopt_as "
                            "names the backend",
                            gm_api_name(api), count);
  }
  if (!driver) return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "there is no %s backend", gm_api_name(api));
  *out = driver;
  return GM_OK;
}

static gm_status device_driver_of_name(gm_context *ctx, const char *op, const char *name, gm_api api, gm__driver **out,
                                       gm_error *err) {
  gm__driver *driver = NULL;
  gm_status status = device_driver_named(ctx, op, name, &driver, err);
  if (status != GM_OK) return status;
  if (!driver->has_ops) return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "this build has no %.15s backend", name);
  if (driver->ops.api != api) {
    return gm__bad_argument(err, op, "`native` has api \"%s\", backend %s has \"%s\"", gm_api_name(api), name,
                            gm_api_name(driver->ops.api));
  }
  *out = driver;
  return GM_OK;
}

/* With what the engine brings, if it does; else by the driver, initialised. */
static gm_status device_ask_adopt(gm__driver *driver, const gm_native_device *native, void **out, gm_error *err) {
  gm_error alone;
  gm_status status = driver->ops.device_adopt_alone(&driver->host, native, out, &alone);
  if (status != GM_ERR_NOT_SUPPORTED) {
    if (status != GM_OK && err) *err = alone;
    return status;
  }
  status = gm__driver_init(driver, err);
  return status == GM_OK ? driver->ops.device_adopt(driver->handle, native, out, err) : status;
}

/* Asks the backend of that name. NULL: the backend of the struct's API. */
static gm_status device_adopt(gm_context *ctx, const char *op, const char *name, const gm_native_device *native,
                              gm_device **out, gm_error *err) {
  gm__driver *driver = NULL;
  gm_status status = name ? device_driver_of_name(ctx, op, name, native->api, &driver, err)
                          : device_driver_of_api(ctx, op, native->api, &driver, err);
  if (status != GM_OK) return status;
  gm_device *device = device_new(ctx, driver, err);
  if (!device) return GM_ERR_OUT_OF_HOST_MEMORY;
  device->adopted = true;
  status = gm__error_of(op, device_ask_adopt(driver, native, &device->handle, err), err);
  status = gm__answer_check_object(driver->info.name, "device_adopt", status, &device->handle, err);
  return device_finish(device, 0, status, out, err);
}

gm_status gm_device_adopt(gm_context *ctx, const gm_native_device *native, gm_device **out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_device_adopt";
  const gm_status status = gm__context_check(ctx, op, err);
  if (status != GM_OK) return status;
  if (!native || !out) return gm__bad_argument(err, op, "`%s` is NULL", native ? "out" : "native");
  return device_adopt(ctx, op, NULL, native, out, err);
}

gm_status gm_device_adopt_as(gm_context *ctx, const char *backend, const gm_native_device *native, gm_device **out,
                             gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_device_adopt_as";
  const gm_status status = gm__context_check(ctx, op, err);
  if (status != GM_OK) return status;
  if (!backend || !native || !out) {
    return gm__bad_argument(err, op, "`%s` is NULL", !backend ? "backend" : native ? "out" : "native");
  }
  return device_adopt(ctx, op, backend, native, out, err);
}

gm_status gm_device_close(gm_device *device, gm_error *err) {
  GM__UNCANCELLED();
  if (!device) return GM_OK;
  if (!gm__object_is(&device->head, GM__KIND_DEVICE)) return gm__device_check(device, "gm_device_close", err);
  bool forked = gm__context_forked(device->ctx);
  const gm_status ended = device->end_stock ? device->end_stock(device, err) : GM_OK;
  if (ended != GM_OK) return ended;
  uint32_t children = atomic_load(&device->children);
  if (children > 0) {
    return gm__fail(
        err, GM_ERR_BUSY, "gm_device_close",
        "%u pools, streams, buffers, transfers, evictors, reservations, watches or registered ranges of the device are "
        "alive",
        children);
  }
  gm__device_close_default_stream(device);
  gm__device_release_named(device);
  gm__peer_end(device, forked);
  atomic_fetch_sub(&device->ctx->children, 1);
  device_release(device, forked);
  return GM_OK;
}
