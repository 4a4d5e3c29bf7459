/* Points: cl_event, one reference each, given back by release. */
#ifndef GM_BACKENDS_OPENCL_POINT_H
#define GM_BACKENDS_OPENCL_POINT_H

#include "backends/opencl/opencl_device.h"

/* The end of a command of `queue`, whose event is taken over: with `out` it becomes a point, else it is waited for and
 * released. The queue is flushed, so that anybody may wait for it. On failure the work has ended all the same, as far
 * as the driver could be made to wait: the caller's host memory is free again. */
gm_status gm__opencl_point_end(gm__opencl_device *device, cl_command_queue queue, cl_event event, gm_backend_point *out,
                               gm_error *err);

/* The same for everything enqueued on `queue` so far. */
gm_status gm__opencl_point_mark(gm__opencl_device *device, cl_command_queue queue, gm_backend_point *out,
                                gm_error *err);

/* The entries of the seam, group 13, and point_import. */
gm_status gm__opencl_point_native(void *device, const gm_backend_point *point, gm_native_point *out, gm_error *err);
gm_status gm__opencl_point_import(void *device, const gm_native_point *native, gm_backend_point *out, gm_error *err);
gm_status gm__opencl_point_record(void *device, void *stream, gm_backend_point *out, gm_error *err);
gm_status gm__opencl_point_done(void *device, const gm_backend_point *point, bool *out, gm_error *err);
gm_status gm__opencl_point_wait(void *device, const gm_backend_point *point, uint64_t timeout_ns, gm_error *err);
gm_status gm__opencl_point_wait_on(void *device, void *stream, const gm_backend_point *point, gm_error *err);
gm_status gm__opencl_point_copy(void *device, const gm_backend_point *point, gm_backend_point *out, gm_error *err);
void gm__opencl_point_release(void *device, const gm_backend_point *point, gm_close_mode mode);

#endif
