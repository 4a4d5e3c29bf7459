#include "core/staging/range.h"

#include "core/base/error.h"

gm_status gm__access_stream(gm_device *device, gm_stream *stream, const char *op, gm_stream **out, gm_error *err) {
  if (!stream) return gm__device_default_stream(device, op, out, err);
  if (stream->device != device) return gm__bad_argument(err, op, "`stream` belongs to another device");
  *out = stream;
  return GM_OK;
}

void gm__access_rest(gm_stream *stream) {
  for (int turn = 0; stream && turn < 2; turn++) {
    if (gm_stream_sync(stream, NULL) == GM_OK) break;
  }
}
