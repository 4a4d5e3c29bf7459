/* Streams: gm's own (non-blocking, so that the null stream does not wait for them) or the engine's, and the begin and
 * end of work on one. */
#ifndef GM_BACKENDS_HIP_STREAM_H
#define GM_BACKENDS_HIP_STREAM_H

#include "backends/hip/hip_current.h"

struct gm__hip_stream {
  hipStream_t handle; /* NULL: the null stream, adopted */
  bool adopted;
  gm__hip_stream *prev, *next; /* of the device's adopted ones */
};

/* One piece of work: the device is current and the stream is known. */
typedef struct gm__hip_job {
  gm__hip_scope scope;
  hipStream_t stream;
} gm__hip_job;

/* `stream` NULL: gm's own, made on first use. NOT_SUPPORTED while the engine captures the stream. On failure nothing is
 * to be left. */
gm_status gm__hip_begin(gm__hip_device *device, void *stream, gm__hip_job *out, gm_error *err);

/* The end of a job whose last call, `op`, answered `code`: with `out` a point is recorded, else the work is waited for.
 * On failure the work has ended all the same, as far as HIP could be made to wait: the caller's memory is free again.
 * Leaves the device in every case. */
gm_status gm__hip_end(gm__hip_device *device, const gm__hip_job *job, hipError_t code, const char *op,
                      gm_backend_point *out, gm_error *err);

/* NOT_SUPPORTED while the engine captures on any stream that it lent: then gm neither allocates nor asks. The device is
 * current. */
gm_status gm__hip_capture_check(gm__hip_device *device, gm_error *err);

/* The entries of the seam, group 12, stream_adopt, stream_same, stream_barrier and stream_capturing. */
gm_status gm__hip_stream_create(void *device, void **out_stream, gm_stream_kind *out_kind, gm_error *err);
gm_status gm__hip_stream_adopt(void *device, const gm_native_stream *native, void **out_stream,
                               gm_stream_kind *out_kind, gm_error *err);
gm_status gm__hip_stream_same(void *device, void *stream, const gm_native_stream *native, bool *out, gm_error *err);
void gm__hip_stream_close(void *device, void *stream, gm_close_mode mode);
gm_status gm__hip_stream_flush(void *device, void *stream, gm_error *err);
gm_status gm__hip_stream_sync(void *device, void *stream, gm_error *err);
gm_status gm__hip_stream_barrier(void *device, void *stream, gm_error *err);
gm_status gm__hip_stream_capturing(void *device, void *stream, bool *out, gm_error *err);

#endif
