/* HIP's library and the devices that it lists, found once at init. Thread-safe after init; the one owner closes it. */
#ifndef GM_BACKENDS_HIP_DRIVER_H
#define GM_BACKENDS_HIP_DRIVER_H

#include "backends/hip/hip_syms.h"

typedef struct gm__hip_driver {
  const gm_services *services;
  gm_backend_host host; /* as lent to init */
  gm__dynlib *lib;
  gm__hip_syms hip;
  int version; /* major * 10^7 + minor * 10^5 + patch */
  uint32_t count;
  gm_device_info *infos; /* by ordinal, which is the index */
} gm__hip_driver;

/* HIP 6.0 changed the values of hipMemoryType, and from then on the layout of hipMemAllocationProp is known. From 7.0
 * on the runtime compiler is no part of the runtime. */
enum { GM__HIP_6 = 60000000, GM__HIP_7 = 70000000, GM__HIP_7_1 = 70100000 };

/* Load the library, start it (hipInit) and list the devices. UNAVAILABLE: no library, no device. INVALID_ARGUMENT: any
 * switch in host->options, there is none. The library stays loaded for the life of the process. */
gm_status gm__hip_driver_open(const gm_backend_host *host, gm__hip_driver **out, gm_error *err);

/* NULL: nothing. Calls nothing of HIP. */
void gm__hip_driver_close(gm__hip_driver *driver);

/* Has this thread no error pending? Asked before calls that may fail; `wipe` then takes away what they left, so that an
 * engine that looks for failed launches does not find gm's. One that was pending stays. */
bool gm__hip_thread_clean(const gm__hip_syms *hip);
void gm__hip_thread_wipe(const gm__hip_syms *hip, bool clean);

/* "HIP 6.3.42131". */
void gm__hip_driver_version(const gm__hip_driver *driver, char *out, size_t capacity);

#endif
