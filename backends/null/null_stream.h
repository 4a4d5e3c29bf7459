/* Streams and points of the null backend. Each device has a virtual clock; a piece of work ends `latency` after the end
 * of the one before it. The clock goes on when a host thread waits, up to what it waits for, or by gm__null_advance;
 * waiting takes no real time. A point is a moment: {1, nanoseconds}. Entries 12 and 13. Thread-safe. */
#ifndef GM_BACKENDS_NULL_NULL_STREAM_H
#define GM_BACKENDS_NULL_NULL_STREAM_H

#include "backends/null/null_device.h"

/* One piece of work: with `out` NULL the clock goes on until it has ended. `stream` may be NULL: it has ended. */
void gm__null_stream_submit(void *device, void *stream, gm_backend_point *out);

gm_status gm__null_stream_create(void *device, void **out_stream, gm_stream_kind *out_kind, gm_error *err);
void gm__null_stream_close(void *device, void *stream, gm_close_mode mode);
gm_status gm__null_stream_flush(void *device, void *stream, gm_error *err);
gm_status gm__null_stream_sync(void *device, void *stream, gm_error *err);
gm_status gm__null_point_record(void *device, void *stream, gm_backend_point *out, gm_error *err);
gm_status gm__null_point_done(void *device, const gm_backend_point *point, bool *out, gm_error *err);
gm_status gm__null_point_wait(void *device, const gm_backend_point *point, uint64_t timeout_ns, gm_error *err);
gm_status gm__null_point_wait_on(void *device, void *stream, const gm_backend_point *point, gm_error *err);
gm_status gm__null_point_copy(void *device, const gm_backend_point *point, gm_backend_point *out, gm_error *err);
void gm__null_point_release(void *device, const gm_backend_point *point, gm_close_mode mode);

#endif
