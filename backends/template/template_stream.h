/* Streams and points of a device that does all work at once. */
#ifndef TEMPLATE_STREAM_H
#define TEMPLATE_STREAM_H

#include "gm/backend.h"

gm_status template_stream_create(void *device, void **out_stream, gm_stream_kind *out_kind, gm_error *err);
void template_stream_close(void *device, void *stream, gm_close_mode mode);
gm_status template_stream_done(void *device, void *stream, gm_error *err); /* flush, sync, barrier */
gm_status template_point_record(void *device, void *stream, gm_backend_point *out, gm_error *err);
gm_status template_point_done(void *device, const gm_backend_point *point, bool *out, gm_error *err);
gm_status template_point_wait(void *device, const gm_backend_point *point, uint64_t timeout_ns, gm_error *err);
gm_status template_point_wait_on(void *device, void *stream, const gm_backend_point *point, gm_error *err);
void template_point_release(void *device, const gm_backend_point *point, gm_close_mode mode);

#endif
