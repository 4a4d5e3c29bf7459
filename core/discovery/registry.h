/* The backends of one context: built-in ones and those that were registered. */
#ifndef GM_CORE_DISCOVERY_REGISTRY_H
#define GM_CORE_DISCOVERY_REGISTRY_H

#include "core/base/inner.h"
#include "core/context/context.h"
#include "core/discovery/known.h"
#include "gm/device.h"

enum { GM__MAX_DRIVERS = 16, GM__OPTIONS_SIZE = 256, GM__LIBRARY_SIZE = 256, GM__MODULE_SIZE = 1024 };

/* A device that the context holds open. Zero-initialised. It must not move while it is kept. */
typedef struct gm__opened {
  void *device; /* the backend's */
  const gm_device_info *info;
  struct gm__opened *next;
} gm__opened;

/* One backend in one context. `lock` guards all members below it. It is held while the driver is probed, and while a
 * device is asked for its figures for a list. It is never held during another call on a device. */
typedef struct gm__driver {
  gm_context *ctx;
  const gm__known_backend *known; /* NULL: not gm's own */
  bool has_ops;
  gm_backend_ops ops; /* complete, if has_ops */
  uint64_t group_capabilities;
  gm_backend_host host; /* lent to the backend */
  char library[GM__LIBRARY_SIZE];
  char module[GM__MODULE_SIZE]; /* of one that is not gm's own: the file that the helper loads; "": it can load none */
  char options[GM__OPTIONS_SIZE];
  gm__mutex lock;
  void *handle; /* the backend's driver; NULL: not initialised */
  bool discovered;
  gm_probe_level level; /* of what follows, if discovered */
  gm_backend_info info;
  gm_device_entry *entries; /* device_count of them as discovered; `memory` is that of the discovery */
  uint32_t entry_count;
  gm__opened *opened;  /* the devices of this backend that are open, newest first */
  gm_device_id deadly; /* whose opening ended the helper, if `deadly_why` has a status */
  gm_error deadly_why;
} gm__driver;

typedef struct gm__registry {
  gm_context *ctx;
  gm__mutex lock; /* the count; drivers never move or go while the context lives */
  gm__driver *drivers[GM__MAX_DRIVERS];
  uint32_t count;
  bool names_checked; /* gm__unknown_names_log was here */
} gm__registry;

/* The context's registry. The first use makes it, with the built-in backends. OUT_OF_HOST_MEMORY; INVALID_ARGUMENT:
 * a library or options are too long. */
GM__INNER gm_status gm__registry_get(gm_context *ctx, gm__registry **out, gm_error *err);

/* NULL: no backend of that name ("rocm" is hip). */
GM__INNER gm__driver *gm__registry_find(gm__registry *registry, const char *name);

/* The first registered backend of that API that adopts devices, and how many there are. NULL: none. */
gm__driver *gm__registry_find_registered(gm__registry *registry, gm_api api, uint32_t *out_count);

/* Initialise the driver, unless that is done. Takes the driver's lock. UNAVAILABLE, and what the backend answers. */
gm_status gm__driver_init(gm__driver *driver, gm_error *err);

/* Keep an open device, or forget it: later questions of a list go to it. Takes the driver's lock. `info` must live as
 * long as it is kept. After `forget` nobody asks the device any more. */
void gm__driver_keep(gm__driver *driver, gm__opened *opened, void *device, const gm_device_info *info);
void gm__driver_forget(gm__driver *driver, const gm__opened *opened);

/* The open device of an entry of the driver's list; NULL: it is not open. REQUIRES: the driver's lock. */
void *gm__driver_opened(const gm__driver *driver, const gm_device_entry *entry);

/* True for the same device of one backend. */
bool gm__device_id_same(const gm_device_id *a, const gm_device_id *b);

/* Does what gm__driver_init does. REQUIRES: the driver's lock. */
gm_status gm__driver_init_locked(gm__driver *driver, gm_error *err);

#endif
