/* Captures: streams whose work the engine records instead of running it. */
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/device/stream.h"
#include "core/discovery/answer.h"

bool gm__stream_captured(const gm_stream *stream) {
  bool captured = false;
  if (!stream) return false;
  if (atomic_load(&stream->recordings)) return true;
  if (!stream->adopted) return false;
  const gm_device *device = stream->device;
  const gm_status status = device->ops->stream_capturing(device->handle, stream->handle, &captured, NULL);
  gm__answer_mend_bool(&captured);
  return status == GM_OK && captured;
}

bool gm__device_captured(gm_device *device) {
  bool captured = false;
  gm__mutex_lock(&device->lock);
  for (const gm_stream *stream = device->streams; stream && !captured; stream = stream->next) {
    captured = gm__stream_captured(stream);
  }
  gm__mutex_unlock(&device->lock);
  return captured;
}

gm_status gm_stream_capture_begin(gm_stream *stream, gm_error *err) {
  GM__UNCANCELLED();
  const gm_status status = gm__stream_check(stream, "gm_stream_capture_begin", err);
  if (status == GM_OK) atomic_fetch_add(&stream->recordings, 1);
  return status;
}

gm_status gm_stream_capture_end(gm_stream *stream, gm_error *err) {
  GM__UNCANCELLED();
  const gm_status status = gm__stream_check(stream, "gm_stream_capture_end", err);
  if (status != GM_OK) return status;
  uint32_t count = atomic_load(&stream->recordings);
  while (count && !atomic_compare_exchange_weak(&stream->recordings, &count, count - 1)) {}
  return count ? GM_OK : gm__bad_argument(err, "gm_stream_capture_end", "the stream is not being captured");
}
