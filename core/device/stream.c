/* Questions about an open stream, and its listeners. Invariant: a point whose stream is not in the device's list has
 * passed, because closing waited for it. */
#include "core/device/stream.h"

#include "core/base/cancel.h"
#include "core/base/error.h"

bool gm__stream_is_closed(const gm_stream *stream) {
  return !gm__object_is(&stream->head, GM__KIND_STREAM) || !stream->device;
}

gm_status gm__stream_check(const gm_stream *stream, const char *op, gm_error *err) {
  if (!stream) return gm__bad_argument(err, op, "`stream` is NULL");
  if (gm__stream_is_closed(stream)) return gm__bad_argument(err, op, "`stream` is closed");
  return gm__context_check(stream->device->ctx, op, err);
}

bool gm__device_makes_streams(const gm_device *device) { return (device->info.capabilities & GM_CAP_STREAMS) != 0; }

gm_stream *gm__device_chosen_stream(gm_device *device) {
  gm__mutex_lock(&device->lock);
  gm_stream *stream = device->chosen_stream;
  gm__mutex_unlock(&device->lock);
  return stream;
}

bool gm__device_made_stream(const gm_device *device, uint64_t id) {
  return (id ^ device->id << GM__STREAM_BITS) >> GM__STREAM_BITS == 0;
}

gm_stream *gm__device_find_stream(gm_device *device, uint64_t id) {
  gm__mutex_lock(&device->lock);
  gm_stream *stream = device->streams;
  while (stream && stream->id != id) stream = stream->next;
  gm__mutex_unlock(&device->lock);
  return stream;
}

void gm__device_add_listener(gm_device *device, gm__stream_listener *listener) {
  gm__mutex_lock(&device->lock);
  listener->prev = NULL;
  listener->next = device->listeners;
  if (device->listeners) device->listeners->prev = listener;
  device->listeners = listener;
  gm__mutex_unlock(&device->lock);
}

void gm__device_remove_listener(gm_device *device, gm__stream_listener *listener) {
  gm__mutex_lock(&device->lock);
  if (listener->next) listener->next->prev = listener->prev;
  if (listener->prev) {
    listener->prev->next = listener->next;
  } else {
    device->listeners = listener->next;
  }
  gm__mutex_unlock(&device->lock);
}

gm_stream_kind gm_stream_get_kind(const gm_stream *stream) { return stream ? stream->kind : GM_STREAM_FIFO; }

gm_device *gm_stream_device(const gm_stream *stream) { return stream ? stream->device : NULL; }

uint64_t gm_stream_id(const gm_stream *stream) { return stream ? stream->id : 0; }

gm_status gm_stream_flush(gm_stream *stream, gm_error *err) {
  GM__UNCANCELLED();
  gm_status status = gm__stream_check(stream, "gm_stream_flush", err);
  if (status == GM_OK)
    status = gm__submitting(stream->device)->stream_flush(stream->device->handle, stream->handle, err);
  return gm__error_of("gm_stream_flush", status, err);
}

void gm__stream_tell_synced(gm_stream *stream, uint64_t clock) {
  gm_device *device = stream->device;
  gm__mutex_lock(&device->lock);
  for (gm__stream_listener *listener = device->listeners; listener; listener = listener->next) {
    if (listener->synced) listener->synced(listener->user, stream, clock);
  }
  gm__mutex_unlock(&device->lock);
}

gm_status gm_stream_sync(gm_stream *stream, gm_error *err) {
  GM__UNCANCELLED();
  gm_status status = gm__stream_check(stream, "gm_stream_sync", err);
  if (status != GM_OK) return status;
  gm_device *device = stream->device;
  uint64_t clock = atomic_fetch_add(&device->order_clock, 1); /* what is freed later may have work behind the wait */
  status = gm__submitting(device)->stream_sync(device->handle, stream->handle, err);
  if (status == GM_OK) gm__stream_tell_synced(stream, clock);
  return gm__error_of("gm_stream_sync", status, err);
}

gm_status gm_stream_barrier(gm_stream *stream, gm_error *err) {
  GM__UNCANCELLED();
  gm_status status = gm__stream_check(stream, "gm_stream_barrier", err);
  if (status != GM_OK || stream->kind == GM_STREAM_FIFO) return status;
  status = gm__submitting(stream->device)->stream_barrier(stream->device->handle, stream->handle, err);
  return gm__error_of("gm_stream_barrier", status, err);
}
