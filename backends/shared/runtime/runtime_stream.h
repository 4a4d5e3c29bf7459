/* Streams: gm's own, or the engine's, and the begin and end of work on one. gm's own streams do not block: the default
 * stream does not wait for them. */
#ifndef GM_BACKENDS_SHARED_RUNTIME_RUNTIME_STREAM_H
#define GM_BACKENDS_SHARED_RUNTIME_RUNTIME_STREAM_H

#include "backends/shared/runtime/runtime.h"

struct gm__runtime_stream {
  void *handle;
  bool adopted;
  gm__runtime_word id; /* the driver's number of an adopted stream; 0: it gives none, or the handle tells all */
  gm__runtime_stream *prev, *next; /* of the device's adopted ones */
};

/* One piece of work: the device is entered and the stream is known. */
typedef struct gm__runtime_job {
  gm__runtime_scope scope;
  void *stream;
} gm__runtime_job;

/* The handle of the per-thread default stream, in both APIs. */
#define GM__RUNTIME_PER_THREAD ((void *)2)

/* `stream` NULL: gm's own, made on first use. NOT_SUPPORTED while the engine captures the stream. On failure nothing is
 * to be left. */
gm_status gm__runtime_begin(gm__runtime_device *device, void *stream, gm__runtime_job *out, gm_error *err);

/* End a job whose last call, `op`, answered `code`. With `out` gm records a point; otherwise it waits for the work. On
 * failure the work has ended too, as far as the driver could be made to wait, so the caller's memory is free again.
 * Leaves the device in every case. */
gm_status gm__runtime_end(gm__runtime_device *device, const gm__runtime_job *job, int code, const char *op,
                          gm_backend_point *out, gm_error *err);

/* NOT_SUPPORTED while the engine captures on any stream that it lent: gm then neither allocates nor asks. The device is
 * entered. */
gm_status gm__runtime_capture_check(gm__runtime_device *device, gm_error *err);

#endif
