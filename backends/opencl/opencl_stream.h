/* Streams: command queues, gm's own (in order) or the engine's. */
#ifndef GM_BACKENDS_OPENCL_STREAM_H
#define GM_BACKENDS_OPENCL_STREAM_H

#include "backends/opencl/opencl_device.h"

typedef struct gm__opencl_stream {
  cl_command_queue queue; /* one reference is ours */
  gm_stream_kind kind;
  bool adopted;
} gm__opencl_stream;

/* The queue of `stream`, of gm's own for NULL, and its order. */
gm_status gm__opencl_stream_queue(gm__opencl_device *device, void *stream, cl_command_queue *out,
                                  gm_stream_kind *out_kind, gm_error *err);

/* On an out-of-order queue: later commands follow, and see, all earlier ones. On others nothing. */
gm_status gm__opencl_stream_order(gm__opencl_device *device, cl_command_queue queue, gm_stream_kind kind,
                                  gm_error *err);

/* The entries of the seam, group 12, stream_adopt, stream_same and stream_barrier. */
gm_status gm__opencl_stream_create(void *device, void **out_stream, gm_stream_kind *out_kind, gm_error *err);
gm_status gm__opencl_stream_adopt(void *device, const gm_native_stream *native, void **out_stream,
                                  gm_stream_kind *out_kind, gm_error *err);
gm_status gm__opencl_stream_same(void *device, void *stream, const gm_native_stream *native, bool *out, gm_error *err);
void gm__opencl_stream_close(void *device, void *stream, gm_close_mode mode);
gm_status gm__opencl_stream_flush(void *device, void *stream, gm_error *err);
gm_status gm__opencl_stream_sync(void *device, void *stream, gm_error *err);
gm_status gm__opencl_stream_barrier(void *device, void *stream, gm_error *err);

#endif
