/* The OpenCL loader and what it lists: every device of every platform, found once at init. Thread-safe after init; the
 * one owner closes it. */
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
  _Atomic uint64_t held; /* bytes that this driver object's devices have of it, adopted ones included */
} gm__opencl_entry;

typedef struct gm__opencl_driver {
  const gm_services *services;
  const gm_backend_host *host; /* for its symbol hook: extensions are looked up later, too */
  gm__opencl_family preferred;
  gm__dynlib *lib; /* NULL: the entries are those of an engine's loader */
  gm__opencl_syms cl;
  uint32_t count, capacity;
  gm__opencl_entry *entries;
  char platforms[64]; /* their names, for people */
} gm__opencl_driver;

/* Load the library and list the devices. UNAVAILABLE: no library, no registered driver, or PoCL would abort (see
 * opencl_icd.h). INVALID_ARGUMENT: host->options
 * (gm__opencl_family_read). No device at all is no failure. The driver stays loaded for the life of the process. */
gm_status gm__opencl_driver_open(const gm_backend_host *host, gm__opencl_driver **out, gm_error *err);

/* The same with the entries of an engine's loader, which stays loaded as long as the driver is used. */
gm_status gm__opencl_driver_open_from(const gm_backend_host *host, gm__symbol_look_up look_up, void *user,
                                      gm__opencl_driver **out, gm_error *err);

/* NULL: nothing. Calls nothing of the driver. */
void gm__opencl_driver_close(gm__opencl_driver *driver);

/* The listed device with this id; NULL when it is none of them (a sub-device of the engine's). */
gm__opencl_entry *gm__opencl_driver_find(gm__opencl_driver *driver, cl_device_id id);

#endif
