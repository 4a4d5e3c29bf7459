/* Points by value: a stream's id and the backend's two words. A stream that is gone, and the zero point, have passed. A
 * point of another device says nothing here, and its words mean nothing to this one's driver. */
#include "core/device/point.h"

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/discovery/answer.h"

static gm_backend_point point_inner(const gm_point *point) {
  return (gm_backend_point){.handle = point->handle, .value = point->value};
}

gm_status gm__point_check(const gm_device *device, const gm_point *point, const char *op, gm_error *err) {
  if (!point) return gm__bad_argument(err, op, "`point` is NULL");
  if (point->stream == 0 || gm__device_made_stream(device, point->stream)) return GM_OK;
  return gm__bad_argument(err, op, "`point` belongs to another device");
}

static bool point_has_passed(gm_device *device, const gm_point *point) {
  return point->stream == 0 || !gm__device_find_stream(device, point->stream);
}

gm_stream *gm__point_stream(gm_device *device, const gm_point *point) {
  gm_stream *stream = point->stream ? gm__device_find_stream(device, point->stream) : NULL;
  const gm_backend_point inner = point_inner(point);
  bool done = false;
  if (!stream || device->ops->point_done(device->handle, &inner, &done, NULL) == GM_ERR_DEVICE_LOST) return NULL;
  gm__answer_mend_bool(&done);
  return done ? NULL : stream;
}

gm_status gm__point_keep(gm_device *device, const gm_point *point, gm_point *out, gm_error *err) {
  *out = (gm_point){0, 0, 0};
  if (!point || !gm__point_stream(device, point)) return GM_OK;
  const gm_backend_point theirs = point_inner(point);
  gm_backend_point own = {0, 0};
  const gm_status status = device->ops->point_copy(device->handle, &theirs, &own, err);
  if (!status) *out = (gm_point){point->stream, own.handle, own.value};
  return status;
}

gm_status gm_stream_record(gm_stream *stream, gm_point *out, gm_error *err) {
  GM__UNCANCELLED();
  gm_status status = gm__stream_check(stream, "gm_stream_record", err);
  if (status != GM_OK) return status;
  if (!out) return gm__bad_argument(err, "gm_stream_record", "`out` is NULL");
  gm_backend_point inner = {0, 0};
  status = gm__submitting(stream->device)->point_record(stream->device->handle, stream->handle, &inner, err);
  gm__error_of("gm_stream_record", status, err);
  if (status == GM_OK) *out = (gm_point){stream->id, inner.handle, inner.value};
  return status;
}

gm_status gm_stream_import_point(gm_stream *stream, const gm_native_point *native, gm_point *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_stream_import_point";
  gm_status status = gm__stream_check(stream, op, err);
  if (status != GM_OK) return status;
  if (!native || !out) return gm__bad_argument(err, op, "`%s` is NULL", native ? "out" : "native");
  gm_backend_point inner = {0, 0};
  status = gm__error_of(op, stream->device->ops->point_import(stream->device->handle, native, &inner, err), err);
  if (status == GM_OK) *out = (gm_point){stream->id, inner.handle, inner.value};
  return status;
}

gm_status gm_stream_wait(gm_stream *stream, const gm_point *point, gm_error *err) {
  GM__UNCANCELLED();
  gm_status status = gm__stream_check(stream, "gm_stream_wait", err);
  if (status != GM_OK) return status;
  status = gm__point_check(stream->device, point, "gm_stream_wait", err);
  if (status != GM_OK) return status;
  if (point_has_passed(stream->device, point)) return GM_OK;
  gm_backend_point inner = point_inner(point);
  status = gm__submitting(stream->device)->point_wait_on(stream->device->handle, stream->handle, &inner, err);
  return gm__error_of("gm_stream_wait", status, err);
}

gm_status gm_point_done(gm_device *device, const gm_point *point, bool *out, gm_error *err) {
  GM__UNCANCELLED();
  gm_status status = gm__device_check(device, "gm_point_done", err);
  if (status != GM_OK) return status;
  if (!out) return gm__bad_argument(err, "gm_point_done", "`out` is NULL");
  status = gm__point_check(device, point, "gm_point_done", err);
  if (status != GM_OK) return status;
  if (point_has_passed(device, point)) {
    *out = true;
    return GM_OK;
  }
  gm_backend_point inner = point_inner(point);
  bool done = false;
  status = device->ops->point_done(device->handle, &inner, &done, err);
  gm__answer_mend_bool(&done);
  if (status == GM_OK) *out = done;
  return gm__error_of("gm_point_done", status, err);
}

gm_status gm_point_wait(gm_device *device, const gm_point *point, uint64_t timeout_ns, gm_error *err) {
  GM__UNCANCELLED();
  gm_status status = gm__device_check(device, "gm_point_wait", err);
  if (status != GM_OK) return status;
  status = gm__point_check(device, point, "gm_point_wait", err);
  if (status != GM_OK) return status;
  if (point_has_passed(device, point)) return GM_OK;
  gm_backend_point inner = point_inner(point);
  return gm__error_of("gm_point_wait", gm__submitting(device)->point_wait(device->handle, &inner, timeout_ns, err),
                      err);
}

gm_status gm_point_native(gm_device *device, const gm_point *point, gm_native_point *out, gm_error *err) {
  GM__UNCANCELLED();
  gm_status status = gm__device_check(device, "gm_point_native", err);
  if (status != GM_OK) return status;
  if (!out) return gm__bad_argument(err, "gm_point_native", "`out` is NULL");
  status = gm__point_check(device, point, "gm_point_native", err);
  if (status != GM_OK) return status;
  gm_backend_point inner = {0, 0};
  if (!point_has_passed(device, point)) inner = point_inner(point);
  return gm__error_of("gm_point_native", device->ops->point_native(device->handle, &inner, out, err), err);
}

void gm_point_release(gm_device *device, gm_point *point) {
  GM__UNCANCELLED();
  if (!device || !point || point->stream == 0) return;
  if (!gm__object_is(&device->head, GM__KIND_DEVICE) || !gm__device_made_stream(device, point->stream)) return;
  gm_backend_point inner = point_inner(point);
  gm_close_mode mode = gm__context_forked(device->ctx) ? GM_CLOSE_ABANDON : GM_CLOSE_NORMAL;
  device->ops->point_release(device->handle, &inner, mode);
  *point = (gm_point){0, 0, 0};
}

static gm_status point_tell_passing(gm_stream *stream, uint64_t clock, const gm_point *point, gm_error *err) {
  gm_device *device = stream->device;
  gm_status status = GM_OK;
  gm__mutex_lock(&device->lock);
  for (gm__stream_listener *listener = device->listeners; listener && !status; listener = listener->next) {
    status = listener->passing(listener->user, stream, clock, point, err);
  }
  gm__mutex_unlock(&device->lock);
  return status;
}

gm_status gm_stream_passed(gm_stream *stream, const gm_point *point, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_stream_passed";
  gm_status status = gm__stream_check(stream, op, err);
  if (status == GM_OK && point) status = gm__point_check(stream->device, point, op, err);
  if (status != GM_OK) return status;
  const uint64_t clock = atomic_fetch_add(&stream->device->order_clock, 1); /* later frees are not meant */
  const bool pending = point && gm__point_stream(stream->device, point);
  return point_tell_passing(stream, clock, pending ? point : NULL, err);
}
