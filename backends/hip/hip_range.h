/* Reserved VA ranges, and what is mapped where in each. HIP takes back one mapping at a time, and keeps released memory
 * while its range is reserved. The device is entered. REQUIRES: ranges_lock, but for take and discard. */
#ifndef GM_BACKENDS_HIP_RANGE_H
#define GM_BACKENDS_HIP_RANGE_H

#include "backends/hip/hip_device.h"
#include "core/base/map.h"

struct gm__hip_range {
  uint64_t address, bytes, align;
  bool lost;      /* HIP did not give it again when gm renewed it: gm can neither map into it nor give it back */
  gm__map mapped; /* address to the bytes mapped there */
  gm__hip_range *next;
};

typedef struct gm__hip_mapping {
  uint64_t address, bytes, handle, offset;
} gm__hip_mapping;

/* Reserve one, not yet listed. */
gm_status gm__hip_range_take(gm__hip_device *device, uint64_t bytes, uint64_t align, gm__hip_range **out,
                             gm_error *err);
void gm__hip_range_add(gm__hip_device *device, gm__hip_range *range);

/* Off the list; NULL: none begins there. */
gm__hip_range *gm__hip_range_remove(gm__hip_device *device, uint64_t address);

/* Its record; NULL: nothing. */
void gm__hip_range_discard(gm__hip_device *device, gm__hip_range *range);

gm_status gm__hip_range_map(gm__hip_device *device, const gm__hip_mapping *mapping, gm_error *err);
gm_status gm__hip_range_unmap(gm__hip_device *device, uint64_t address, uint64_t bytes, gm_error *err);
/* Open it to the device with this ordinal. */
gm_status gm__hip_range_access(gm__hip_device *device, int ordinal, uint64_t address, uint64_t bytes, gm_error *err);

#endif
