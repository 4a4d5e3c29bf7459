/* Points: an event and the number of its use (core/base/event_slots.h). */
#ifndef GM_BACKENDS_HIP_POINT_H
#define GM_BACKENDS_HIP_POINT_H

#include "backends/hip/hip_device.h"

/* Record a point on `stream`; the device is current. */
gm_status gm__hip_point_mark(gm__hip_device *device, hipStream_t stream, gm_backend_point *out, gm_error *err);

/* Destroy every event of gm's, with the device current. */
void gm__hip_events_destroy(gm__hip_device *device);

/* The entries of the seam, group 13 but the barrier, point_import and point_native. */
gm_status gm__hip_point_native(void *device, const gm_backend_point *point, gm_native_point *out, gm_error *err);
gm_status gm__hip_point_import(void *device, const gm_native_point *native, gm_backend_point *out, gm_error *err);
gm_status gm__hip_point_record(void *device, void *stream, gm_backend_point *out, gm_error *err);
gm_status gm__hip_point_done(void *device, const gm_backend_point *point, bool *out, gm_error *err);
gm_status gm__hip_point_wait(void *device, const gm_backend_point *point, uint64_t timeout_ns, gm_error *err);
gm_status gm__hip_point_wait_on(void *device, void *stream, const gm_backend_point *point, gm_error *err);
gm_status gm__hip_point_copy(void *device, const gm_backend_point *point, gm_backend_point *out, gm_error *err);
void gm__hip_point_release(void *device, const gm_backend_point *point, gm_close_mode mode);

#endif
