#include "backends/null/null_stream.h"

#include "backends/null/null_device.h"
#include "backends/null/null_entries.h"
#include "backends/null/null_link.h"
#include "core/base/alloc.h"
#include "core/base/error.h"

/* Invariant: neither the clock nor the end of a stream goes back. Sums stop at UINT64_MAX. */

typedef struct null_stream { /* guarded by the device lock */
  uint64_t end;              /* the moment when all submitted work has ended */
  gm__null_lane lane;        /* of the link model */
} null_stream;

/* A point is a moment, or the number of work in the link model. */
enum { STREAM_MOMENT = 1, STREAM_WORK = 2 };

static void stream_reach(gm__null_device *device, uint64_t moment) {
  if (device->now < moment) device->now = moment;
}

static gm_backend_point stream_point(const gm__null_device *device, uint64_t moment) {
  if (moment <= device->now) return (gm_backend_point){0};
  return (gm_backend_point){.handle = STREAM_MOMENT, .value = moment};
}

void gm__null_advance(void *device, uint64_t ns) {
  gm__null_device *self = device;
  gm__mutex_lock(&self->lock);
  if (self->link)
    gm__null_link_pass(self, gm__link_later(self->now, ns));
  else
    self->now = gm__link_later(self->now, ns);
  gm__mutex_unlock(&self->lock);
}

static void stream_submit(gm__null_device *device, null_stream *order, gm_backend_point *out) {
  uint64_t end = device->now;
  if (order) end = order->end = gm__link_later(order->end > end ? order->end : end, device->options->latency);
  if (!out) stream_reach(device, end);
  if (out) *out = stream_point(device, end);
}

static gm_status stream_submit_link(gm__null_device *device, null_stream *order, const gm__link_op *like,
                                    gm_backend_point *out, gm_error *err) {
  if (order) gm__null_link_pass(device, order->end); /* work of the time without a model */
  const uint64_t sequence = gm__null_link_submit(device, order ? &order->lane : NULL, like);
  if (!sequence) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "null stream", "no host memory for the work");
  if (!out || !order) gm__null_link_wait(device, sequence, UINT64_MAX);
  if (out) *out = order ? (gm_backend_point){.handle = STREAM_WORK, .value = sequence} : (gm_backend_point){0};
  return GM_OK;
}

gm_status gm__null_stream_submit(void *device, void *stream, const gm__link_op *like, gm_backend_point *out,
                                 gm_error *err) {
  gm__null_device *self = device;
  gm_status status = GM_OK;
  gm__mutex_lock(&self->lock);
  if (self->link)
    status = stream_submit_link(self, stream, like, out, err);
  else
    stream_submit(self, stream, out);
  gm__mutex_unlock(&self->lock);
  return status;
}

gm_status gm__null_stream_create(void *device, void **out_stream, gm_stream_kind *out_kind, gm_error *err) {
  null_stream *stream = gm__alloc(((gm__null_device *)device)->services, sizeof *stream);
  if (!stream) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "stream_create", "no host memory for the stream");
  *out_stream = stream;
  *out_kind = GM_STREAM_FIFO;
  return GM_OK;
}

void gm__null_stream_close(void *device, void *stream, gm_close_mode mode) {
  if (mode == GM_CLOSE_NORMAL) gm__null_stream_sync(device, stream, NULL);
  gm__null_lock(&((gm__null_device *)device)->lock, mode);
  gm__null_link_close_lane(device, &((null_stream *)stream)->lane);
  gm__null_unlock(&((gm__null_device *)device)->lock, mode);
  gm__release(((gm__null_device *)device)->services, stream, sizeof(null_stream));
}

gm_status gm__null_point_record(void *device, void *stream, gm_backend_point *out, gm_error *err) {
  (void)err;
  gm__null_device *self = device;
  gm__mutex_lock(&self->lock);
  const null_stream *order = stream;
  const uint64_t work = self->link ? gm__null_link_newest(self, &order->lane) : 0;
  *out = work ? (gm_backend_point){.handle = STREAM_WORK, .value = work} : stream_point(self, order->end);
  gm__mutex_unlock(&self->lock);
  return GM_OK;
}

gm_status gm__null_stream_sync(void *device, void *stream, gm_error *err) {
  gm_backend_point point;
  gm__null_point_record(device, stream, &point, err);
  return gm__null_point_wait(device, &point, UINT64_MAX, err);
}

/* Work of a model that is gone has ended. */
static bool stream_passed(const gm__null_device *device, const gm_backend_point *point) {
  if (point->handle != STREAM_WORK) return point->value <= device->now;
  return !device->link || gm__null_link_ended(device, point->value);
}

gm_status gm__null_point_done(void *device, const gm_backend_point *point, bool *out, gm_error *err) {
  (void)err;
  gm__null_device *self = device;
  gm__mutex_lock(&self->lock);
  *out = stream_passed(self, point);
  if (!*out && self->link) gm__null_link_poll(self);
  gm__mutex_unlock(&self->lock);
  return GM_OK;
}

/* Time passes until then, at most until `limit`. */
static void stream_wait(gm__null_device *device, const gm_backend_point *point, uint64_t limit) {
  if (point->handle == STREAM_WORK) {
    if (device->link) gm__null_link_wait(device, point->value, limit);
  } else {
    const uint64_t moment = point->value <= limit ? point->value : limit;
    if (device->link) gm__null_link_pass(device, moment);
    stream_reach(device, moment);
  }
}

gm_status gm__null_point_wait(void *device, const gm_backend_point *point, uint64_t timeout_ns, gm_error *err) {
  gm__null_device *self = device;
  gm__mutex_lock(&self->lock);
  stream_wait(self, point, gm__link_later(self->now, timeout_ns));
  const bool reached = stream_passed(self, point);
  gm__mutex_unlock(&self->lock);
  if (reached) return GM_OK;
  return gm__fail(err, GM_ERR_TIMEOUT, "point_wait", "not reached within %llu ns of virtual time",
                  (unsigned long long)timeout_ns);
}

gm_status gm__null_point_wait_on(void *device, void *stream, const gm_backend_point *point, gm_error *err) {
  gm__null_device *self = device;
  null_stream *order = stream;
  gm_status status = GM_OK;
  gm__mutex_lock(&self->lock);
  if (point->handle == STREAM_WORK && !stream_passed(self, point)) {
    const gm__link_op like = {.after = point->value};
    gm_backend_point mark;
    status = stream_submit_link(self, order, &like, &mark, err);
  } else if (point->handle != STREAM_WORK && order->end < point->value) {
    order->end = point->value;
  }
  gm__mutex_unlock(&self->lock);
  return status;
}
