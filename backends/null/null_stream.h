/* Streams and points of the null backend. Each device has a virtual clock. A piece of work ends `latency` after the one
 * before it. The clock advances when a host thread waits, up to the awaited moment, or by gm__null_advance. Waiting
 * takes no real time. A point is a moment: {1, nanoseconds}. Thread-safe. */
#ifndef GM_BACKENDS_NULL_NULL_STREAM_H
#define GM_BACKENDS_NULL_NULL_STREAM_H

#include "backends/shared/link_model.h"
#include "gm/backend.h"

/* Submit one piece of work. With `out` NULL the clock advances until the work has ended. With `stream` NULL the work
 * has ended at once. With a link model the work takes what `like` says, and work without a stream is waited for; then
 * only, OUT_OF_HOST_MEMORY. */
gm_status gm__null_stream_submit(void *device, void *stream, const gm__link_op *like, gm_backend_point *out,
                                 gm_error *err);

#endif
