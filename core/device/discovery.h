/* Filling a driver's record of what it is and which devices it has. */
#ifndef GM_CORE_DEVICE_DISCOVERY_H
#define GM_CORE_DEVICE_DISCOVERY_H

#include "core/device/registry.h"

/* See to it that the driver was discovered at `level` or a better one. Never fails because the backend is unavailable:
 * that is in driver->info. OUT_OF_HOST_MEMORY. */
gm_status gm__discover_driver(gm__driver *driver, gm_probe_level level, gm_error *err);

/* All devices of the registry's available drivers, physical groups made and memory read now where the driver is loaded.
 * *out has *count entries; give back with gm__release(services, *out, *count * sizeof **out). ACTIVE is made up for
 * where nothing was discovered. */
gm_status gm__discover_entries(gm__registry *registry, gm_device_entry **out, size_t *count, gm_error *err);

/* The backends that somebody has chosen by name; all others are switched off. */
typedef struct gm__choice {
  const char *names; /* "cpu,cuda"; borrowed from the context or the environment */
  const char *by;    /* "the program", "GM_BACKENDS" */
} gm__choice;

/* False: nobody has chosen, so every backend takes part. */
bool gm__backends_chosen(const gm_context *ctx, gm__choice *out);
bool gm__choice_has(const gm__choice *choice, const char *name);

/* What a backend said of a device becomes gm's: mended (answer.h), capabilities of whole groups are in. */
void gm__discovery_clean(const gm__driver *driver, uint32_t index, gm_device_info *info);

/* The same for an entry of the driver's list, whose id is made. */
void gm__discovery_enter(const gm__driver *driver, uint32_t index, gm_device_entry *entry);

/* Set physical, host_pool and counted of each entry, from what the entries say of themselves. OUT_OF_HOST_MEMORY. */
gm_status gm__discovery_group(const gm_services *services, gm_device_entry *entries, size_t count, gm_error *err);

#endif
