#include <inttypes.h>
#include <string.h>

#include "core/base/cancel.h"
#include "core/base/sized.h"
#include "core/store/value.h"

static gm_location value_location(const gm_value *value) {
  if (value->form == GM_VALUE_TENSOR) {
    if (!value->bytes) return GM_LOCATION_DEVICE;
    return value->buffer ? gm_buffer_location(value->buffer) : GM_LOCATION_HOST;
  }
  gm_location furthest = GM_LOCATION_DEVICE;
  for (size_t i = 0; i < value->count; i++) {
    const gm_location location = value_location(value->items[i]);
    if (location > furthest) furthest = location;
  }
  return furthest;
}

gm_status gm_value_describe(const gm_value *value, gm_value_info *out, gm_error *err) {
  static const char op[] = "gm_value_describe";
  gm_status status = gm__value_check(value, op, err);
  if (!status) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status) return status;
  gm_value_info info = {.struct_size = sizeof info,
                        .form = value->form,
                        .bytes = value->bytes,
                        .items = value->count,
                        .nodes = value->nodes,
                        .depth = value->depth,
                        .location = value_location(value),
                        .dtype = value->dtype,
                        .rank = value->rank};
  memcpy(info.shape, value->shape, value->rank * sizeof *value->shape);
  gm__sized_out(out, &info, sizeof info);
  return GM_OK;
}

static gm_status value_tensor_check(const gm_value *value, const char *op, gm_error *err) {
  const gm_status status = gm__value_check(value, op, err);
  if (status || value->form == GM_VALUE_TENSOR) return status;
  return gm__bad_argument(err, op, "`value` is no tensor");
}

gm_status gm_value_read(gm_value *value, uint64_t offset, void *dst, uint64_t bytes, gm_stream *stream, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_value_read";
  const gm_status status = value_tensor_check(value, op, err);
  if (status) return status;
  if (offset > value->bytes || bytes > value->bytes - offset) {
    return gm__bad_argument(err, op, "`offset` %" PRIu64 " and `bytes` %" PRIu64 " reach beyond the tensor's %" PRIu64,
                            offset, bytes, value->bytes);
  }
  if (!bytes) return GM_OK;
  if (!dst) return gm__bad_argument(err, op, "`dst` is NULL");
  if (value->buffer) return gm_buffer_read(value->buffer, value->offset + offset, dst, bytes, stream, err);
  memcpy(dst, value->host + offset, (size_t)bytes);
  return GM_OK;
}

gm_status gm_value_buffer(const gm_value *value, gm_buffer **out, uint64_t *out_offset, gm_error *err) {
  static const char op[] = "gm_value_buffer";
  const gm_status status = value_tensor_check(value, op, err);
  if (status) return status;
  if (!out || !out_offset) return gm__bad_argument(err, op, "`%s` is NULL", out ? "out_offset" : "out");
  if (!value->buffer) return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "the tensor has no buffer");
  *out = value->buffer;
  *out_offset = value->offset;
  return GM_OK;
}

/* A tensor without a buffer stays where it is as long as it lives. */
gm_status gm_value_lock(gm_value *value, const void **out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_value_lock";
  void *host = NULL;
  gm_status status = value_tensor_check(value, op, err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  if (!value->buffer) {
    *out = value->host;
    return GM_OK;
  }
  status = gm_buffer_lock(value->buffer, NULL, err);
  if (status) return gm__error_of(op, status, err);
  status = gm__error_of(op, gm_buffer_host(value->buffer, &host, err), err);
  if (status) {
    (void)gm_buffer_unlock(value->buffer, NULL, NULL);
  } else {
    *out = (const char *)host + value->offset;
  }
  return status;
}

gm_status gm_value_unlock(gm_value *value, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_value_unlock";
  const gm_status status = value_tensor_check(value, op, err);
  if (status || !value->buffer) return status;
  return gm__error_of(op, gm_buffer_unlock(value->buffer, NULL, err), err);
}
