/* Memory of other processes that is open on a device: each driver allocation once, with a count of its users. */
#ifndef GM_CORE_DEVICE_IMPORT_H
#define GM_CORE_DEVICE_IMPORT_H

#include "gm/backend.h"
#include "gm/device.h"

typedef struct gm__import gm__import;

/* Opens the allocation behind `shared`, or counts one user more of it. OUT_OF_HOST_MEMORY and the backend's answers. */
gm_status gm__import_open(gm_device *device, const gm_shared *shared, gm__import **out, gm_error *err);

/* All of the driver's allocation. */
const gm_memory *gm__import_memory(const gm__import *self);

/* One user less; the last one closes it. In a forked child it only releases host memory. REQUIRES: no pool lock. */
void gm__import_close(gm_device *device, gm__import *self);

#endif
