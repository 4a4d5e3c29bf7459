#include "backends/shared/runtime/runtime.h"

#include "core/base/error.h"

/* Invariant: `lost` of a device is set once and stays. */

gm_status gm__runtime_fail(gm__runtime_device *device, int code, const char *op, gm_error *err) {
  const gm__code_table *codes = device->api->codes;
  const gm__code *found = gm__code_find(codes, code);
  const bool known = atomic_load(&device->lost) != 0;
  if (!known && found->status != GM_ERR_DEVICE_LOST) return gm__code_fail(codes, err, code, op);
  int32_t none = 0;
  atomic_compare_exchange_strong(&device->lost, &none, code);
  return gm__fail_native(err, GM_ERR_DEVICE_LOST, code, op, "%s: %s (%d): the device is lost; close and reopen it", op,
                         found->name, code);
}

gm_status gm__runtime_answer(gm__runtime_device *device, int code, const char *op, gm_error *err) {
  return code == GM__RUNTIME_SUCCESS ? GM_OK : gm__runtime_fail(device, code, op, err);
}

gm_status gm__runtime_released(gm__runtime_device *device, int code, const char *op, gm_error *err) {
  if (code == GM__RUNTIME_SUCCESS || code == GM__RUNTIME_DEINITIALIZED) return GM_OK;
  const gm_status status = gm__runtime_fail(device, code, op, err);
  return status == GM_ERR_DEVICE_LOST ? GM_OK : status;
}

gm_status gm__runtime_nonsense(const gm__runtime_device *device, const char *op, const char *what, gm_error *err) {
  return gm__code_nonsense(device->api->codes, err, op, what);
}

gm_status gm__runtime_enter(gm__runtime_device *device, gm__runtime_scope *out, gm_error *err) {
  const int32_t lost = atomic_load(&device->lost);
  if (lost) return gm__runtime_fail(device, lost, device->api->name, err);
  *out = (gm__runtime_scope){0};
  return device->api->enter(device, out, err);
}

gm_status gm__runtime_enter_release(gm__runtime_device *device, gm__runtime_scope *out, bool *out_gone, gm_error *err) {
  const gm_status status = atomic_load(&device->lost) ? GM_ERR_DEVICE_LOST : gm__runtime_enter(device, out, err);
  *out_gone = status == GM_ERR_DEVICE_LOST || status == GM_ERR_UNAVAILABLE;
  return *out_gone ? GM_OK : status;
}

void gm__runtime_leave(const gm__runtime_device *device, const gm__runtime_scope *scope) {
  device->api->leave(device, scope);
}
