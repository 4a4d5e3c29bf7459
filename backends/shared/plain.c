#include "backends/shared/plain.h"

#include "core/base/error.h"

gm_status gm__plain_check_type(const char *op, uint32_t types, uint32_t type, gm_error *err) {
  if (type < types) return GM_OK;
  return gm__bad_argument(err, op, "`type` must be below %u, is %u", (unsigned)types, (unsigned)type);
}

gm_status gm__plain_check(const char *op, uint32_t types, const gm_memory_params *params, gm_error *err) {
  const gm_status status = gm__plain_check_type(op, types, params->type, err);
  if (status != GM_OK) return status;
  if (params->bytes == 0) return gm__bad_argument(err, op, "`bytes` must not be 0");
  if (!(params->align & (params->align - 1))) return GM_OK;
  return gm__bad_argument(err, op, "`align` must be a power of two, is %llu", (unsigned long long)params->align);
}

gm_status gm__plain_check_index(const char *op, uint64_t count, uint32_t index, gm_error *err) {
  if (index < count) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_FOUND, op, "`index` must be below %llu, the number of devices, is %u",
                  (unsigned long long)count, (unsigned)index);
}

gm_status gm__plain_device_state(void *device, gm_error *err) {
  (void)device, (void)err;
  return GM_OK;
}

gm_status gm__plain_type_count(void *device, uint32_t *out, gm_error *err) {
  (void)device, (void)err;
  *out = 1;
  return GM_OK;
}

gm_status gm__plain_stream_done(void *device, void *stream, gm_error *err) {
  (void)device, (void)stream, (void)err;
  return GM_OK;
}

gm_status gm__plain_point_copy(void *device, const gm_backend_point *point, gm_backend_point *out, gm_error *err) {
  (void)device, (void)err;
  *out = *point;
  return GM_OK;
}

void gm__plain_point_release(void *device, const gm_backend_point *point, gm_close_mode mode) {
  (void)device, (void)point, (void)mode;
}
