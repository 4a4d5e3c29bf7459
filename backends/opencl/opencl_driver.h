/* The OpenCL loader and the devices of every platform, which gm lists once at init. Thread-safe after init. Its one
 * owner closes it. */
#ifndef GM_BACKENDS_OPENCL_DRIVER_H
#define GM_BACKENDS_OPENCL_DRIVER_H

#include <stdatomic.h>

#include "backends/opencl/opencl_kind.h"

/* One device of one platform. */
typedef struct gm__opencl_entry {
  cl_platform_id platform;
  cl_device_id id;
  gm_device_info info;
  gm__opencl_kinds kinds;
  _Atomic uint64_t held; /* bytes that gm's open and adopted devices hold of it */
} gm__opencl_entry;

typedef struct gm__opencl_driver {
  const gm_services *services;
  const gm_backend_host *host; /* for its symbol hook: gm looks extensions up later too */
  gm__opencl_family preferred;
  gm__dynlib *lib; /* NULL: the entries come from an engine's loader */
  gm__opencl_syms cl;
  uint32_t count, capacity;
  gm__opencl_entry *entries;
  char platforms[64]; /* their names, for people */
} gm__opencl_driver;

/* The entry `init` with the entries of an engine's loader, which stays loaded as long as gm uses the driver. */
gm_status gm__opencl_driver_open_from(const gm_backend_host *host, gm__symbol_look_up look_up, void *user, void **out,
                                      gm_error *err);

/* Close the driver without calling it. NULL does nothing. */
void gm__opencl_driver_close(gm__opencl_driver *driver);

/* The listed device with this id. NULL: no platform lists it (it is a sub-device of the engine's). */
gm__opencl_entry *gm__opencl_driver_find(gm__opencl_driver *driver, cl_device_id id);

#endif
