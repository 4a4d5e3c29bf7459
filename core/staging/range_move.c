#include "core/base/error.h"
#include "core/staging/range_host.h"

static gm_status range_submit(const gm__access *access, const gm__transfer *what, const gm_stream *on,
                              gm_backend_point *point, gm_error *err) {
  gm_device *device = access->device;
  const gm_backend_ops *ops = gm__submitting(device);
  const gm_memory *memory = &access->memory;
  const uint64_t at = access->offset, bytes = access->bytes;
  switch (what->kind) {
    case GM__TRANSFER_WRITE:
      return ops->copy_to_device(device->handle, on->handle, memory, at, what->src, bytes, point, err);
    case GM__TRANSFER_READ:
      return ops->copy_to_host(device->handle, on->handle, memory, at, what->dst, bytes, point, err);
    case GM__TRANSFER_FILL:
      return ops->fill(device->handle, on->handle, memory, at, bytes, what->src, what->pattern_bytes, point, err);
    case GM__TRANSFER_COPY: break;
  }
  const gm_copy_item item = {&what->from->memory, what->from->offset, memory, at, bytes};
  return ops->copy(device->handle, on->handle, &item, point, err);
}

gm_status gm__range_move(const gm__access *access, const gm__transfer *what, gm_stream *stream, gm_point *out,
                         const char *op, gm_error *err) {
  gm_stream *on;
  gm_backend_point point = {0};
  if (!stream && access->bytes && !gm__device_has_default_stream(access->device)) {
    if (out) *out = (gm_point){0};
    return gm__error_of(op, gm__access_by_host(access, what, op, err), err);
  }
  gm_status status = gm__access_stream(access->device, stream, op, &on, err);
  if (!status && access->bytes) status = range_submit(access, what, on, stream && out ? &point : NULL, err);
  if (!status && out) *out = stream ? (gm_point){stream->id, point.handle, point.value} : (gm_point){0};
  return gm__error_of(op, status, err);
}
