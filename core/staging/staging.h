/* The ring of a device: made at its first use, ended when the device closes. Thread-safe, but for gm__staging_shape. */
#ifndef GM_CORE_STAGING_STAGING_H
#define GM_CORE_STAGING_STAGING_H

#include "core/staging/ring.h"
#include "core/staging/stock.h"

/* The device's ring. It lives until as many gm__staging_close as there were opens; it may live longer. Errors:
 * OUT_OF_HOST_MEMORY. */
gm_status gm__staging_open(gm_device *device, gm__ring **out, gm_error *err);
void gm__staging_close(gm_device *device);

/* The limit that was measured once for the device, and is kept here: up to which size small copies are packed. False:
 * nothing yet. REQUIRES: the staging is open. */
bool gm__staging_small(gm_device *device, uint64_t *out);
void gm__staging_set_small(gm_device *device, uint64_t bytes);

/* The device works on bytes of a slot in its own memory beside it, *out_memory: on up to *out_most of a copy; 0: never.
 * Setting gives it to the staging. False and REQUIRES: as above. */
bool gm__staging_beside(gm_device *device, gm__beside use, uint64_t *out_most, gm_memory *out_memory);
void gm__staging_set_beside(gm_device *device, gm__beside use, uint64_t most, const gm_memory *memory);

/* Bytes per second up and down at best. False: they were not measured, and are 0. */
bool gm__staging_links(gm_device *device, double *out_up, double *out_down);
/* REQUIRES: the staging is open. */
void gm__staging_set_links(gm_device *device, double up, double down);

/* Slots and their bytes, in place of the usual ones. REQUIRES: the device has no ring yet. OUT_OF_HOST_MEMORY. */
gm_status gm__staging_shape(gm_device *device, uint32_t slots, uint64_t slot_bytes, gm_error *err);

#endif
