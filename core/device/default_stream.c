/* The stream of calls that name none. Invariant: the stream that the caller chose is open while it is chosen, because
 * it does not close. */
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/device/stream.h"

bool gm__device_has_default_stream(gm_device *device) {
  return gm__device_makes_streams(device) || gm__device_chosen_stream(device);
}

/* gm's own, made on first use. */
static gm_status default_own(gm_device *device, gm_stream **out, gm_error *err) {
  gm__mutex_lock(&device->lock);
  gm_stream *stream = device->default_stream;
  gm__mutex_unlock(&device->lock);
  if (!stream) {
    gm_stream *fresh = NULL;
    const gm_status status = gm__stream_open(device, NULL, &fresh, err);
    if (status != GM_OK) return status;
    gm__mutex_lock(&device->lock);
    stream = device->default_stream;
    if (!stream) device->default_stream = stream = fresh;
    gm__mutex_unlock(&device->lock);
    if (stream != fresh) gm__stream_discard(fresh, false); /* another thread was first */
  }
  *out = stream;
  return GM_OK;
}

gm_status gm__device_default_stream(gm_device *device, const char *op, gm_stream **out, gm_error *err) {
  gm_stream *chosen = gm__device_chosen_stream(device);
  if (chosen) {
    *out = chosen;
    return GM_OK;
  }
  if (gm__device_makes_streams(device)) return default_own(device, out, err);
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, op,
                  "`stream` is NULL, and gm has no stream of its own on this device: " GM__STREAM_ADVICE);
}

gm_status gm_device_set_default_stream(gm_device *device, gm_stream *stream, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_device_set_default_stream";
  gm_status status = gm__device_check(device, op, err);
  if (status == GM_OK && stream) status = gm__stream_check(stream, op, err);
  if (status != GM_OK) return status;
  if (stream && stream->device != device) return gm__bad_argument(err, op, "`stream` belongs to another device");
  if (stream && stream->silent) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, op,
                    "the engine lent `stream` without leave to submit (may_submit false), and the calls that it would "
                    "serve submit");
  }
  gm__mutex_lock(&device->lock);
  device->chosen_stream = stream;
  gm__mutex_unlock(&device->lock);
  return GM_OK;
}

void gm__device_close_default_stream(gm_device *device) {
  device->chosen_stream = NULL;
  if (device->default_stream) gm__stream_discard(device->default_stream, gm__context_forked(device->ctx));
  device->default_stream = NULL;
}
