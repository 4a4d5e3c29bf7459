/* Streams and points of the null backend. Each device has a virtual clock. A piece of work ends `latency` after the one
 * before it. The clock advances when a host thread waits, up to the awaited moment, or by gm__null_advance. Waiting
 * takes no real time. A point is a moment: {1, nanoseconds}. Thread-safe. */
#ifndef GM_BACKENDS_NULL_NULL_STREAM_H
#define GM_BACKENDS_NULL_NULL_STREAM_H

#include "gm/backend.h"

/* Submit one piece of work. With `out` NULL the clock advances until the work has ended. With `stream` NULL the work
 * has ended at once. */
void gm__null_stream_submit(void *device, void *stream, gm_backend_point *out);

#endif
