/* Devices: descriptions, figures, and the parts of opening and closing that CUDA and HIP have alike. */
#ifndef GM_BACKENDS_SHARED_RUNTIME_RUNTIME_DEVICE_H
#define GM_BACKENDS_SHARED_RUNTIME_RUNTIME_DEVICE_H

#include "backends/shared/runtime/runtime.h"

/* Make a record for the listed device `index`; this calls no driver. The API then makes the device usable and calls
 * gm__runtime_device_try, or discards the record. NOT_FOUND, OUT_OF_HOST_MEMORY. */
gm_status gm__runtime_device_make(gm__runtime_driver *driver, uint32_t index, gm__runtime_device **out, gm_error *err);

/* Give back the record's host memory. Calls nothing of the driver. */
void gm__runtime_device_discard(gm__runtime_device *device);

/* Try what only trying tells, on a usable device. Clear the capabilities that do not work. */
void gm__runtime_device_try(gm__runtime_device *device);

#endif
