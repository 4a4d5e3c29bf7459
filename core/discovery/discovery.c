/* Invariants: a driver's entries belong to its last discovery and change only under its lock; a level once reached is
 * not lost. Nothing that a backend answers ends discovery: it becomes that backend's reason. */
#include "core/discovery/discovery.h"

#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/dynlib.h"
#include "core/base/env.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/discovery/answer.h"
#include "core/discovery/device_entry.h"
#include "core/discovery/device_figures.h"
#include "core/discovery/isolate.h"

static void discovery_refuse(gm__driver *driver, gm_status status) {
  driver->info.status = status;
  driver->info.device_count = 0;
}

/* A known backend that this build does not have: still say whether its driver is there. */
static void discovery_absent(gm__driver *driver) {
  const gm__known_backend *known = driver->known;
  gm_error *reason = &driver->info.reason;
  if (!known->libraries) {
    discovery_refuse(driver, gm__fail(reason, GM_ERR_NOT_SUPPORTED, "discover", "not built"));
    return;
  }
  gm__dynlib_spec spec = {known->name, known->libraries, driver->host.library, known->advice};
  if (gm__dynlib_find(&spec, driver->info.library, sizeof driver->info.library)) {
    discovery_refuse(
        driver, gm__fail(reason, GM_ERR_NOT_SUPPORTED, "discover",
                         "%s is there, but this build of gm has no %s backend", driver->info.library, known->title));
    return;
  }
  const char *const given[] = {driver->host.library, NULL};
  const char *const *names = driver->host.library ? given : known->libraries;
  char tried[320] = "";
  for (const char *const *name = names; *name; name++) {
    size_t used = strlen(tried);
    snprintf(tried + used, sizeof tried - used, "%s%s", used ? ", " : "", *name);
  }
  discovery_refuse(driver, gm__fail(reason, GM_ERR_UNAVAILABLE, "discover", "%s not found (tried %s); %s", names[0],
                                    tried, known->advice));
}

static bool discovery_in_list(const char *list, const char *name) {
  size_t length = strlen(name);
  for (const char *item = list; item && *item; item = strchr(item, ','), item = item ? item + 1 : NULL) {
    if (strncmp(item, name, length) == 0 && (item[length] == ',' || item[length] == '\0')) return true;
  }
  return false;
}

bool gm__backends_chosen(const gm_context *ctx, gm__choice *out) {
  *out = (gm__choice){ctx->backends, "the program"};
  if (!ctx->backends[0] && !ctx->ignore_environment) *out = (gm__choice){gm__env("GM_BACKENDS"), "GM_BACKENDS"};
  return out->names && out->names[0];
}

bool gm__choice_has(const gm__choice *choice, const char *name) { return discovery_in_list(choice->names, name); }

/* The one who has left this backend out; NULL: nobody. */
static const char *discovery_off_by(const gm__driver *driver) {
  gm__choice choice;
  return gm__backends_chosen(driver->ctx, &choice) && !gm__choice_has(&choice, driver->info.name) ? choice.by : NULL;
}

static void discovery_passive(gm__driver *driver) {
  gm_driver_info found = {.struct_size = sizeof found};
  gm_status status = driver->ops.probe(&driver->host, GM_PROBE_PASSIVE, &found, &driver->info.reason);
  discovery_refuse(driver, status);
  if (status != GM_OK) return;
  gm__answer_mend_found(&found);
  driver->info.simulated = found.simulated;
  driver->info.device_count = found.device_count;
  snprintf(driver->info.library, sizeof driver->info.library, "%s", found.library);
  snprintf(driver->info.version, sizeof driver->info.version, "%s", found.version);
}

/* A device that is open is asked itself. REQUIRES: the driver's lock. */
static gm_status discovery_read_memory(gm__driver *driver, gm_device_entry *entry, gm_error *err) {
  const gm__figures_subject subject = {.driver = driver,
                                       .info = &entry->info,
                                       .device = gm__driver_opened(driver, entry),
                                       .thorough = true,
                                       .listed = true};
  return gm__device_figures(&subject, &entry->memory, err);
}

static gm_status discovery_read_device(gm__driver *driver, uint32_t index, gm_device_entry *entry, gm_error *err) {
  gm_status status = driver->ops.device_info(driver->handle, index, NULL, &entry->info, err);
  if (status != GM_OK) return status;
  gm__device_entry_enter(driver, index, entry);
  return discovery_read_memory(driver, entry, err);
}

/* The devices of an initialised driver, into driver->entries. */
static gm_status discovery_read_devices(gm__driver *driver, gm_error *err) {
  const gm_services *services = gm__context_services(driver->ctx);
  uint32_t count = 0;
  gm_status status = driver->ops.device_count(driver->handle, &count, err);
  if (status != GM_OK) return status;
  if (count == 0) return gm__fail(err, GM_ERR_UNAVAILABLE, "discover", "the driver is there and shows no device");
  if (count > GM__ANSWER_DEVICES_MAX) {
    return gm__fail(err, GM_ERR_DRIVER, "device_count", "the driver claims %u devices; that cannot be", count);
  }
  gm_device_entry *entries = gm__alloc_array(services, count, sizeof *entries);
  if (!entries) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "discover", "no host memory for %u devices", count);
  for (uint32_t i = 0; i < count && status == GM_OK; i++) {
    status = discovery_read_device(driver, i, &entries[i], err);
  }
  if (status != GM_OK) {
    gm__release(services, entries, count * sizeof *entries);
    return status;
  }
  gm__release(services, driver->entries, driver->entry_count * sizeof *driver->entries);
  driver->entries = entries;
  driver->entry_count = count;
  return GM_OK;
}

/* REQUIRES: the driver's lock. */
static gm_status discovery_list_again(gm__driver *driver, gm_error *err) {
  if (!driver->handle || !driver->discovered || driver->level != GM_PROBE_ISOLATED) return GM_OK;
  const gm_status status = discovery_read_devices(driver, err);
  if (status != GM_OK) return status;
  driver->info.device_count = driver->entry_count;
  driver->level = GM_PROBE_ACTIVE;
  return GM_OK;
}

gm_status gm__discover_load(gm__driver *driver, gm_error *err) {
  gm__mutex_lock(&driver->lock);
  gm_status status = gm__driver_init_locked(driver, err);
  if (status == GM_OK) status = discovery_list_again(driver, err);
  gm__mutex_unlock(&driver->lock);
  return status;
}

static gm_status discovery_active(gm__driver *driver) {
  discovery_passive(driver); /* for the names; whether the driver works is told by loading it */
  gm_error *reason = &driver->info.reason;
  gm_status status = gm__driver_init_locked(driver, reason);
  if (status == GM_OK) status = discovery_read_devices(driver, reason);
  discovery_refuse(driver, status);
  if (status != GM_OK) return status;
  driver->info.device_count = driver->entry_count;
  driver->info.simulated = driver->info.simulated || driver->entries[0].info.simulated; /* the files cannot tell */
  if (!driver->info.version[0]) {
    memcpy(driver->info.version, driver->entries[0].info.version, sizeof driver->info.version);
  }
  return GM_OK;
}

gm_status gm__discover_driver(gm__driver *driver, gm_probe_level level, gm_error *err) {
  bool software = driver->known && driver->known->software;
  const bool helped = driver->known || driver->module[0];
  if (software || (level == GM_PROBE_ISOLATED && !helped)) level = GM_PROBE_ACTIVE;
  gm_status status = GM_OK;
  gm__mutex_lock(&driver->lock);
  if (driver->discovered && (driver->level >= GM_PROBE_ACTIVE || driver->level >= level)) {
    if (driver->info.status == GM_OK) discovery_list_again(driver, NULL); /* if it fails, the old list stays */
    gm__mutex_unlock(&driver->lock);
    return GM_OK;
  }
  driver->info.reason = (gm_error){.status = GM_OK};
  const char *off_by = discovery_off_by(driver);
  if (off_by) {
    discovery_refuse(driver,
                     gm__fail(&driver->info.reason, GM_ERR_UNAVAILABLE, "discover", "switched off by %s", off_by));
    level = GM_PROBE_ACTIVE;
  } else if (!driver->has_ops) {
    discovery_absent(driver);
  } else if (level == GM_PROBE_PASSIVE) {
    discovery_passive(driver);
  } else if (level == GM_PROBE_ISOLATED) {
    discovery_refuse(driver, gm__isolate(driver, &driver->info.reason));
    if (driver->info.status == GM_OK) driver->info.device_count = driver->entry_count;
    driver->info.simulated = driver->entry_count && driver->entries[0].info.simulated;
  } else {
    discovery_active(driver);
  }
  gm__answer_mend_reason(&driver->info.reason);
  if (driver->info.status == GM_ERR_OUT_OF_HOST_MEMORY) { /* no word on the backend: nothing was learned */
    status = GM_ERR_OUT_OF_HOST_MEMORY;
    if (err) *err = driver->info.reason;
  }
  driver->discovered = status == GM_OK;
  driver->level = level;
  gm__mutex_unlock(&driver->lock);
  return status;
}

static uint32_t discovery_driver_count(gm__registry *registry) {
  gm__mutex_lock(&registry->lock);
  uint32_t count = registry->count;
  gm__mutex_unlock(&registry->lock);
  return count;
}

/* Entry `index` of an array of the caller's, whose first entry says how large each of them is. */
static void discovery_put(void *first, size_t index, const void *from, size_t bytes) {
  void *at = gm__sized_at(first, index);
  memcpy(at, first, sizeof(uint32_t));
  gm__sized_out(at, from, bytes);
}

gm_status gm_discover_backends(gm_context *ctx, gm_probe_level level, gm_backend_info *infos, size_t capacity,
                               size_t *count, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_discover_backends";
  gm_status status = gm__context_check(ctx, op, err);
  if (status != GM_OK) return status;
  if ((unsigned)level > GM_PROBE_ISOLATED) return gm__bad_argument(err, op, "`level` is %d", (int)level);
  if (!count) return gm__bad_argument(err, op, "`count` is NULL");
  if (capacity > 0) status = gm__sized_check(infos, sizeof *infos, op, "infos", err);
  gm__registry *registry = NULL;
  if (status == GM_OK) status = gm__registry_get(ctx, &registry, err);
  if (status != GM_OK) return status;
  gm__unknown_names_log(registry);
  uint32_t drivers = discovery_driver_count(registry);
  for (uint32_t i = 0; i < drivers; i++) {
    status = gm__discover_driver(registry->drivers[i], level, err);
    if (status != GM_OK) return status;
    gm__mutex_lock(&registry->drivers[i]->lock);
    if (i < capacity) discovery_put(infos, i, &registry->drivers[i]->info, sizeof registry->drivers[i]->info);
    gm__mutex_unlock(&registry->drivers[i]->lock);
  }
  *count = drivers;
  return GM_OK;
}

static size_t discovery_entry_count(gm__driver *driver) {
  gm__mutex_lock(&driver->lock);
  const size_t count = driver->info.status == GM_OK ? driver->entry_count : 0;
  gm__mutex_unlock(&driver->lock);
  return count;
}

/* Copy a driver's entries to `out` (room for `capacity`), memory read again. Returns how many were copied: since they
 * were counted the list may have been made again. */
static size_t discovery_copy(gm__driver *driver, gm_device_entry *out, size_t capacity) {
  gm__mutex_lock(&driver->lock);
  size_t count = driver->info.status == GM_OK ? driver->entry_count : 0;
  if (count > capacity) count = capacity;
  for (size_t i = 0; i < count; i++) {
    out[i] = driver->entries[i];
    if (driver->handle) discovery_read_memory(driver, &out[i], NULL);
  }
  gm__mutex_unlock(&driver->lock);
  return count;
}

static gm_status discovery_total(gm__registry *registry, uint32_t drivers, size_t *out, gm_error *err) {
  size_t total = 0;
  for (uint32_t i = 0; i < drivers; i++) {
    gm_status status = gm__discover_driver(registry->drivers[i], GM_PROBE_ACTIVE, err);
    if (status != GM_OK) return status;
    total += discovery_entry_count(registry->drivers[i]);
  }
  *out = total;
  return GM_OK;
}

/* All entries, as many as there are. *fewer: a list was made again meanwhile, and there is nothing in *out. */
static gm_status discovery_collect(gm__registry *registry, gm_device_entry **out, size_t *count, bool *fewer,
                                   gm_error *err) {
  const gm_services *services = gm__context_services(registry->ctx);
  const uint32_t drivers = discovery_driver_count(registry);
  size_t total = 0, used = 0;
  const gm_status status = discovery_total(registry, drivers, &total, err);
  if (status != GM_OK) return status;
  gm_device_entry *entries = gm__alloc_array(services, total, sizeof *entries);
  if (!entries) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "discover", "no host memory for %zu devices", total);
  for (uint32_t i = 0; i < drivers; i++) used += discovery_copy(registry->drivers[i], entries + used, total - used);
  *fewer = used < total;
  if (*fewer) {
    gm__release(services, entries, total * sizeof *entries);
    return GM_OK;
  }
  *out = entries;
  *count = total;
  return GM_OK;
}

/* A list is made again once at most, so this ends. */
gm_status gm__discover_entries(gm__registry *registry, gm_device_entry **out, size_t *count, gm_error *err) {
  const gm_services *services = gm__context_services(registry->ctx);
  gm_device_entry *entries = NULL;
  size_t total = 0;
  bool fewer = true;
  gm_status status = GM_OK;
  while (status == GM_OK && fewer) status = discovery_collect(registry, &entries, &total, &fewer, err);
  if (status != GM_OK) return status;
  status = gm__device_entry_group(services, entries, total, err);
  if (status != GM_OK) {
    gm__release(services, entries, total * sizeof *entries);
    return status;
  }
  *out = entries;
  *count = total;
  return GM_OK;
}

gm_status gm_discover_devices(gm_context *ctx, gm_device_entry *entries, size_t capacity, size_t *count,
                              gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_discover_devices";
  gm_status status = gm__context_check(ctx, op, err);
  if (status != GM_OK) return status;
  if (!count) return gm__bad_argument(err, op, "`count` is NULL");
  if (capacity > 0) status = gm__sized_check(entries, sizeof *entries, op, "entries", err);
  gm__registry *registry = NULL;
  gm_device_entry *all = NULL;
  size_t total = 0;
  if (status == GM_OK) status = gm__registry_get(ctx, &registry, err);
  if (status == GM_OK) status = gm__discover_entries(registry, &all, &total, err);
  if (status != GM_OK) return status;
  for (size_t i = 0; i < total && i < capacity; i++) discovery_put(entries, i, &all[i], sizeof all[i]);
  gm__release(gm__context_services(ctx), all, total * sizeof *all);
  *count = total;
  return GM_OK;
}
