/* Discovery: what a driver is, and which devices it has. */
#ifndef GM_CORE_DISCOVERY_DISCOVERY_H
#define GM_CORE_DISCOVERY_DISCOVERY_H

#include "core/base/inner.h"
#include "core/discovery/registry.h"

/* Discover the driver at `level`, unless that or more is done. An unavailable backend is no failure: driver->info
 * says why. OUT_OF_HOST_MEMORY. */
gm_status gm__discover_driver(gm__driver *driver, gm_probe_level level, gm_error *err);

/* Initialise a discovered driver in this process. A list that a helper has made is made again.
 * Cards may have come or gone since then, and an index means the driver's own order. UNAVAILABLE, and what the backend
 * answers. */
gm_status gm__discover_load(gm__driver *driver, gm_error *err);

/* All devices of the registry's available drivers, grouped into physical devices. Drivers that are loaded read their
 * memory now. Where nothing was discovered, ACTIVE discovery runs first. *out has *count entries; give them back
 * with gm__release(services, *out, *count * sizeof **out). */
gm_status gm__discover_entries(gm__registry *registry, gm_device_entry **out, size_t *count, gm_error *err);

/* The backends that somebody has chosen by name. All others are switched off. */
typedef struct gm__choice {
  const char *names; /* "cpu,cuda"; borrowed from the context or the environment */
  const char *by;    /* "the program", "GM_BACKENDS" */
} gm__choice;

/* False: nobody has chosen, and every backend takes part. */
GM__INNER bool gm__backends_chosen(const gm_context *ctx, gm__choice *out);
GM__INNER bool gm__choice_has(const gm__choice *choice, const char *name);

/* Log a warning for each name in the program's and the operator's lists that is no backend, once for each registry. It
 * is no failure: somebody else's backend may be registered later. */
void gm__unknown_names_log(gm__registry *registry);

#endif
