/* Points of the OpenCL backend. A point is a cl_event with one reference. */
#ifndef GM_BACKENDS_OPENCL_POINT_H
#define GM_BACKENDS_OPENCL_POINT_H

#include "backends/opencl/opencl_device.h"

/* End a call whose command on `queue` gave `event`, and take the event over. With `out` the event becomes a point.
 * Otherwise the call waits for it and releases it. The queue is flushed, so that anybody may wait for the point. After
 * a failure the work has ended, as far as the driver agrees to wait: the caller may reuse its host memory. */
gm_status gm__opencl_point_end(gm__opencl_device *device, cl_command_queue queue, cl_event event, gm_backend_point *out,
                               gm_error *err);

/* End a call in this way for everything that is enqueued on `queue` so far. */
gm_status gm__opencl_point_mark(gm__opencl_device *device, cl_command_queue queue, gm_backend_point *out,
                                gm_error *err);

/* End a call that enqueued several commands and has come to `status`. GM_OK ends it with gm__opencl_point_mark. After a
 * failure no command of the call runs on. */
gm_status gm__opencl_point_after(gm__opencl_device *device, cl_command_queue queue, gm_status status,
                                 gm_backend_point *out, gm_error *err);

#endif
