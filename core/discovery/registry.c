/* Invariants: drivers are added and never removed before the context goes; an initialised driver stays so. */
#include "core/discovery/registry.h"

#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/env.h"
#include "core/base/error.h"
#include "core/discovery/answer.h"
#include "core/discovery/backend_prepare.h"
#include "core/discovery/module.h"

static void driver_destroy(gm__driver *driver, bool forked) {
  const gm_services *services = gm__context_services(driver->ctx);
  if (driver->handle) driver->ops.fini(driver->handle, forked ? GM_CLOSE_ABANDON : GM_CLOSE_NORMAL);
  gm__release(services, driver->entries, driver->entry_count * sizeof *driver->entries);
  if (!forked) gm__mutex_destroy(&driver->lock);
  gm__release(services, driver, sizeof *driver);
}

static void registry_destroy(void *object, bool forked) {
  gm__registry *registry = object;
  const gm_services *services = gm__context_services(registry->ctx);
  for (uint32_t i = 0; i < registry->count; i++) driver_destroy(registry->drivers[i], forked);
  if (!forked) gm__mutex_destroy(&registry->lock);
  gm__release(services, registry, sizeof *registry);
}

/* In "name<sep>value<end>name<sep>value…": the value of `name` into `out`. "" if it is not there. False: it does not
 * fit. */
static bool registry_item(const char *list, const char *name, char separator, char end, char *out, size_t capacity) {
  out[0] = '\0';
  size_t length = strlen(name);
  for (const char *item = list; item && *item; item = strchr(item, end), item = item ? item + 1 : NULL) {
    if (strncmp(item, name, length) != 0 || item[length] != separator) continue;
    const char *value = item + length + 1;
    const char *stop = strchr(value, end);
    size_t bytes = stop ? (size_t)(stop - value) : strlen(value);
    if (bytes >= capacity) return false;
    memcpy(out, value, bytes);
    out[bytes] = '\0';
  }
  return true;
}

/* GM_<NAME>_<what>: what the operator says, "" or NULL for nothing. */
static const char *driver_operator_says(const gm_context *ctx, const char *name, const char *what) {
  char variable[48];
  snprintf(variable, sizeof variable, "GM_%s_%s", name, what);
  for (char *letter = variable; *letter; letter++) {
    if (*letter >= 'a' && *letter <= 'z') *letter = (char)(*letter - 'a' + 'A');
  }
  return ctx->ignore_environment ? NULL : gm__env(variable);
}

/* One setting of this backend: the operator's, else the program's. False: it does not fit. */
static bool driver_take_setting(const gm_context *ctx, const char *name, const char *what, char *out, size_t capacity) {
  const char *says = driver_operator_says(ctx, name, what);
  if (says && says[0]) return (size_t)snprintf(out, capacity, "%s", says) < capacity;
  if (strcmp(what, "LIBRARY") == 0) return registry_item(ctx->libraries, name, '=', ',', out, capacity);
  return registry_item(ctx->backend_options, name, ':', ';', out, capacity);
}

static gm_status driver_take_settings(gm__driver *driver, const char *name, gm_error *err) {
  const gm_context *ctx = driver->ctx;
  if (!driver_take_setting(ctx, name, "LIBRARY", driver->library, sizeof driver->library) ||
      !driver_take_setting(ctx, name, "OPTIONS", driver->options, sizeof driver->options)) {
    return gm__bad_argument(err, "gm_context_create", "library or options of backend %s are longer than %d bytes", name,
                            GM__OPTIONS_SIZE - 1);
  }
  driver->host = (gm_backend_host){.struct_size = sizeof driver->host,
                                   .services = gm__context_services(ctx),
                                   .library = driver->library[0] ? driver->library : NULL,
                                   .options = driver->options,
                                   .symbol_hook = ctx->symbol_hook,
                                   .symbol_hook_user = ctx->symbol_hook_user};
  return GM_OK;
}

/* Takes the registry's lock as held, or as not needed yet. `ops` NULL: known, but not in this build. */
static gm_status registry_add(gm__registry *registry, const gm__known_backend *known, const gm_backend_ops *ops,
                              gm_error *err) {
  const gm_services *services = gm__context_services(registry->ctx);
  if (registry->count == GM__MAX_DRIVERS) {
    return gm__fail(err, GM_ERR_OVER_LIMIT, "gm_backend_register", "there are %d backends already", GM__MAX_DRIVERS);
  }
  gm__driver *driver = gm__alloc(services, sizeof *driver);
  if (!driver) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_backend_register", "no host memory for a backend");
  driver->ctx = registry->ctx;
  driver->known = known;
  driver->has_ops = ops != NULL;
  driver->info = (gm_backend_info){.struct_size = sizeof driver->info, .api = known ? known->api : GM_API_OTHER};
  gm_status status = ops ? gm__backend_prepare(ops, &driver->ops, err) : GM_OK;
  const char *name = known ? known->name : driver->ops.name;
  if (status == GM_OK) status = driver_take_settings(driver, name, err);
  if (status != GM_OK) {
    gm__release(services, driver, sizeof *driver);
    return status;
  }
  if (ops && !known) driver->info.api = ops->api;
  if (ops && !known) gm__module_of(ops, driver->module, sizeof driver->module);
  if (ops) driver->group_capabilities = gm__backend_group_capabilities(&driver->ops);
  memcpy(driver->info.name, name, strlen(name) + 1); /* prepared: at most 15 bytes */
  gm__mutex_init(&driver->lock, GM__RANK_DRIVER);
  registry->drivers[registry->count++] = driver;
  return GM_OK;
}

static gm_status registry_create(gm_context *ctx, gm__registry **out, gm_error *err) {
  gm__registry *registry = gm__alloc(gm__context_services(ctx), sizeof *registry);
  if (!registry) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "registry", "no host memory for the registry");
  registry->ctx = ctx;
  gm__mutex_init(&registry->lock, GM__RANK_REGISTRY);
  for (size_t i = 0; gm__known_backend_at(i); i++) {
    gm_status status = registry_add(registry, gm__known_backend_at(i), gm__known_backend_at(i)->ops, err);
    if (status == GM_OK) continue;
    registry_destroy(registry, false);
    return status;
  }
  *out = registry;
  return GM_OK;
}

gm_status gm__registry_get(gm_context *ctx, gm__registry **out, gm_error *err) {
  gm__mutex_lock(&ctx->lock);
  gm__registry *registry = ctx->slots[GM__SLOT_REGISTRY];
  gm_status status = GM_OK;
  bool fresh = !registry;
  if (fresh) status = registry_create(ctx, &registry, err);
  if (status == GM_OK) ctx->slots[GM__SLOT_REGISTRY] = *out = registry;
  gm__mutex_unlock(&ctx->lock);
  if (fresh && status == GM_OK) gm__context_on_destroy(ctx, registry_destroy, registry);
  return status;
}

gm__driver *gm__registry_find(gm__registry *registry, const char *name) {
  if (strcmp(name, "rocm") == 0) name = "hip";
  gm__driver *found = NULL;
  gm__mutex_lock(&registry->lock);
  for (uint32_t i = 0; i < registry->count && !found; i++) {
    if (strcmp(registry->drivers[i]->info.name, name) == 0) found = registry->drivers[i];
  }
  gm__mutex_unlock(&registry->lock);
  return found;
}

gm__driver *gm__registry_find_registered(gm__registry *registry, gm_api api, uint32_t *out_count) {
  gm__driver *found = NULL;
  uint32_t count = 0;
  gm__mutex_lock(&registry->lock);
  for (uint32_t i = 0; i < registry->count; i++) {
    gm__driver *driver = registry->drivers[i];
    if (driver->known || driver->ops.api != api || !(driver->group_capabilities & GM_CAP_ADOPT)) continue;
    if (!count++) found = driver;
  }
  gm__mutex_unlock(&registry->lock);
  *out_count = count;
  return found;
}

gm_status gm_backend_register(gm_context *ctx, const gm_backend_ops *ops, gm_error *err) {
  gm_status status = gm__context_check(ctx, "gm_backend_register", err);
  gm__registry *registry = NULL;
  gm_backend_ops checked;
  if (status == GM_OK) status = gm__backend_prepare(ops, &checked, err);
  if (status == GM_OK) status = gm__registry_get(ctx, &registry, err);
  if (status != GM_OK) return status;
  if (gm__registry_find(registry, checked.name)) {
    return gm__bad_argument(err, "gm_backend_register", "there is a backend \"%s\" already", checked.name);
  }
  gm__mutex_lock(&registry->lock);
  status = registry_add(registry, NULL, ops, err);
  gm__mutex_unlock(&registry->lock);
  return status;
}

gm_status gm__driver_init(gm__driver *driver, gm_error *err) {
  if (!driver->has_ops) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "init", "this build has no %s backend", driver->info.name);
  }
  gm__mutex_lock(&driver->lock);
  const gm_status status = gm__driver_init_locked(driver, err);
  gm__mutex_unlock(&driver->lock);
  return status;
}

static bool id_is(const gm_device_id *id, const uint8_t *uuid, const char *partition) {
  return memcmp(id->uuid, uuid, sizeof id->uuid) == 0 && strncmp(id->partition, partition, sizeof id->partition) == 0;
}

bool gm__device_id_same(const gm_device_id *a, const gm_device_id *b) { return id_is(a, b->uuid, b->partition); }

void gm__driver_keep(gm__driver *driver, gm__opened *opened, void *device, const gm_device_info *info) {
  opened->device = device;
  opened->info = info;
  gm__mutex_lock(&driver->lock);
  opened->next = driver->opened;
  driver->opened = opened;
  gm__mutex_unlock(&driver->lock);
}

void gm__driver_forget(gm__driver *driver, const gm__opened *opened) {
  if (!opened->device) return;
  gm__mutex_lock(&driver->lock);
  gm__opened **at = &driver->opened;
  while (*at && *at != opened) at = &(*at)->next;
  if (*at) *at = opened->next;
  gm__mutex_unlock(&driver->lock);
}

/* A driver may list two devices with one UUID, and an engine's device need not be in the list. */
static bool opened_is(const gm_device_info *info, const gm_device_entry *entry) {
  return info->index == entry->info.index && id_is(&entry->id, info->uuid, info->partition);
}

void *gm__driver_opened(const gm__driver *driver, const gm_device_entry *entry) {
  const gm__opened *each = driver->opened;
  while (each && !opened_is(each->info, entry)) each = each->next;
  return each ? each->device : NULL;
}

gm_status gm__driver_init_locked(gm__driver *driver, gm_error *err) {
  if (driver->handle) return GM_OK;
  const gm_status status = driver->ops.init(&driver->host, &driver->handle, err);
  return gm__answer_check_object(driver->info.name, "init", status, &driver->handle, err);
}
