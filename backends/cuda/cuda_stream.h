/* Streams: gm's own (non-blocking, so that the legacy default stream does not wait for them) or the engine's, and the
 * begin and end of work on one. */
#ifndef GM_BACKENDS_CUDA_STREAM_H
#define GM_BACKENDS_CUDA_STREAM_H

#include "backends/cuda/cuda_context.h"

struct gm__cuda_stream {
  CUstream handle;
  bool adopted;
  unsigned long long id;        /* of an adopted one, the driver's number; 0: it gives none, or the handle tells all */
  gm__cuda_stream *prev, *next; /* of the device's adopted ones */
};

/* One piece of work: the context is current and the stream is known. */
typedef struct gm__cuda_job {
  gm__cuda_scope scope;
  CUstream stream;
} gm__cuda_job;

/* `stream` NULL: gm's own, made on first use. NOT_SUPPORTED while the engine captures the stream. On failure nothing is
 * to be left. */
gm_status gm__cuda_begin(gm__cuda_device *device, void *stream, gm__cuda_job *out, gm_error *err);

/* The end of a job whose last call, `op`, answered `code`: with `out` a point is recorded, else the work is waited for.
 * On failure the work has ended all the same, as far as the driver could be made to wait: the caller's memory is free
 * again. Leaves the context in every case. */
gm_status gm__cuda_end(gm__cuda_device *device, const gm__cuda_job *job, CUresult code, const char *op,
                       gm_backend_point *out, gm_error *err);

/* NOT_SUPPORTED while the engine captures on any stream that it lent: then gm neither allocates nor asks. The device's
 * context is current. */
gm_status gm__cuda_capture_check(gm__cuda_device *device, gm_error *err);

/* The entries of the seam, group 12, stream_adopt, stream_same, stream_barrier and stream_capturing. */
gm_status gm__cuda_stream_create(void *device, void **out_stream, gm_stream_kind *out_kind, gm_error *err);
gm_status gm__cuda_stream_adopt(void *device, const gm_native_stream *native, void **out_stream,
                                gm_stream_kind *out_kind, gm_error *err);
gm_status gm__cuda_stream_same(void *device, void *stream, const gm_native_stream *native, bool *out, gm_error *err);
void gm__cuda_stream_close(void *device, void *stream, gm_close_mode mode);
gm_status gm__cuda_stream_flush(void *device, void *stream, gm_error *err);
gm_status gm__cuda_stream_sync(void *device, void *stream, gm_error *err);
gm_status gm__cuda_stream_barrier(void *device, void *stream, gm_error *err);
gm_status gm__cuda_stream_capturing(void *device, void *stream, bool *out, gm_error *err);

#endif
