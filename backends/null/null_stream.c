#include "backends/null/null_stream.h"

#include "backends/null/null_device.h"
#include "backends/null/null_entries.h"
#include "core/base/alloc.h"
#include "core/base/error.h"

/* Invariant: neither the clock nor the end of a stream goes back. Sums stop at UINT64_MAX. */

typedef struct null_stream {
  uint64_t end; /* the moment when all submitted work has ended; guarded by the device lock */
} null_stream;

static uint64_t stream_later(uint64_t moment, uint64_t ns) {
  return ns > UINT64_MAX - moment ? UINT64_MAX : moment + ns;
}

static void stream_reach(gm__null_device *device, uint64_t moment) {
  if (device->now < moment) device->now = moment;
}

static gm_backend_point stream_point(const gm__null_device *device, uint64_t moment) {
  if (moment <= device->now) return (gm_backend_point){0};
  return (gm_backend_point){.handle = 1, .value = moment};
}

void gm__null_advance(void *device, uint64_t ns) {
  gm__null_device *self = device;
  gm__mutex_lock(&self->lock);
  self->now = stream_later(self->now, ns);
  gm__mutex_unlock(&self->lock);
}

void gm__null_stream_submit(void *device, void *stream, gm_backend_point *out) {
  gm__null_device *self = device;
  null_stream *order = stream;
  gm__mutex_lock(&self->lock);
  uint64_t end = self->now;
  if (order) end = order->end = stream_later(order->end > end ? order->end : end, self->options->latency);
  if (!out) stream_reach(self, end);
  if (out) *out = stream_point(self, end);
  gm__mutex_unlock(&self->lock);
}

gm_status gm__null_stream_create(void *device, void **out_stream, gm_stream_kind *out_kind, gm_error *err) {
  null_stream *stream = gm__alloc(((gm__null_device *)device)->services, sizeof *stream);
  if (!stream) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "stream_create", "no host memory for the stream");
  *out_stream = stream;
  *out_kind = GM_STREAM_FIFO;
  return GM_OK;
}

void gm__null_stream_close(void *device, void *stream, gm_close_mode mode) {
  if (mode == GM_CLOSE_NORMAL) gm__null_stream_sync(device, stream, NULL);
  gm__release(((gm__null_device *)device)->services, stream, sizeof(null_stream));
}

gm_status gm__null_point_record(void *device, void *stream, gm_backend_point *out, gm_error *err) {
  (void)err;
  gm__null_device *self = device;
  gm__mutex_lock(&self->lock);
  *out = stream_point(self, ((null_stream *)stream)->end);
  gm__mutex_unlock(&self->lock);
  return GM_OK;
}

gm_status gm__null_stream_sync(void *device, void *stream, gm_error *err) {
  gm_backend_point point;
  gm__null_point_record(device, stream, &point, err);
  return gm__null_point_wait(device, &point, UINT64_MAX, err);
}

gm_status gm__null_point_done(void *device, const gm_backend_point *point, bool *out, gm_error *err) {
  (void)err;
  gm__null_device *self = device;
  gm__mutex_lock(&self->lock);
  *out = point->value <= self->now;
  gm__mutex_unlock(&self->lock);
  return GM_OK;
}

gm_status gm__null_point_wait(void *device, const gm_backend_point *point, uint64_t timeout_ns, gm_error *err) {
  gm__null_device *self = device;
  gm__mutex_lock(&self->lock);
  const uint64_t limit = stream_later(self->now, timeout_ns);
  const bool reached = point->value <= limit;
  stream_reach(self, reached ? point->value : limit);
  gm__mutex_unlock(&self->lock);
  if (reached) return GM_OK;
  return gm__fail(err, GM_ERR_TIMEOUT, 0, "point_wait", "not reached within %llu ns of virtual time",
                  (unsigned long long)timeout_ns);
}

gm_status gm__null_point_wait_on(void *device, void *stream, const gm_backend_point *point, gm_error *err) {
  (void)err;
  gm__null_device *self = device;
  null_stream *order = stream;
  gm__mutex_lock(&self->lock);
  if (order->end < point->value) order->end = point->value;
  gm__mutex_unlock(&self->lock);
  return GM_OK;
}
