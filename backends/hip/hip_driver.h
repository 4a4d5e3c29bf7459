/* HIP's library: gm starts it at init and lists its devices. */
#ifndef GM_BACKENDS_HIP_DRIVER_H
#define GM_BACKENDS_HIP_DRIVER_H

#include "backends/hip/hip_syms.h"
#include "backends/shared/runtime/runtime.h"

typedef struct gm__hip_driver {
  gm__runtime_driver base; /* first */
  gm__hip_syms hip;
  int version; /* major * 10^7 + minor * 10^5 + patch */
} gm__hip_driver;

/* HIP 6.0 changed the values of hipMemoryType. gm knows the layout of hipMemAllocationProp from 6.0 on. Since 7.0 the
 * runtime compiler is no longer part of the runtime. */
enum { GM__HIP_6 = 60000000, GM__HIP_7 = 70000000, GM__HIP_7_1 = 70100000 };

/* check_options and start of HIP's table. There are no switches. Start finds the entries, starts HIP (hipInit) and
 * lists the devices. UNAVAILABLE: there is no device. The library stays loaded for the life of the process. */
gm_status gm__hip_check_options(const char *options, gm_error *err);
gm_status gm__hip_start(gm__runtime_driver *driver, gm_error *err);

/* Does this thread have no pending error? gm asks before calls that may fail. gm__hip_thread_wipe then removes the
 * errors that gm's calls left, so an engine does not find them. A pending error stays. */
bool gm__hip_thread_clean(const gm__hip_syms *hip);
void gm__hip_thread_wipe(const gm__hip_syms *hip, bool clean);

#endif
