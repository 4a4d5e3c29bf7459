/* The command queue that a call works on: the queue of a stream, or gm's own. Thread-safe. */
#ifndef GM_BACKENDS_OPENCL_QUEUE_H
#define GM_BACKENDS_OPENCL_QUEUE_H

#include "backends/opencl/opencl_device.h"

typedef struct gm__opencl_queue {
  cl_command_queue handle;
  gm_stream_kind kind;
} gm__opencl_queue;

typedef struct gm__opencl_stream {
  gm__opencl_queue queue; /* gm holds one reference on the handle */
  bool adopted;
} gm__opencl_stream;

/* The queue of `stream`. With `stream` NULL it is gm's own in-order queue, which the first such call makes;
 * NOT_SUPPORTED where the engine forbids one. The handle is borrowed. */
gm_status gm__opencl_queue_of(gm__opencl_device *device, void *stream, gm__opencl_queue *out, gm_error *err);

/* On an out-of-order queue, make later commands follow and see all earlier ones. Other queues need nothing. */
gm_status gm__opencl_queue_order(gm__opencl_device *device, const gm__opencl_queue *queue, gm_error *err);

#endif
