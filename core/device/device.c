#include "core/device/device.h"

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/discovery/device_figures.h"

gm_status gm__device_check(const gm_device *device, const char *op, gm_error *err) {
  if (!device) return gm__bad_argument(err, op, "`device` is NULL");
  if (!gm__object_is(&device->head, GM__KIND_DEVICE)) return gm__bad_argument(err, op, "`device` is closed");
  return gm__context_check(device->ctx, op, err);
}

const gm_device_info *gm_device_get_info(const gm_device *device) { return device ? &device->info : NULL; }

gm_context *gm_device_context(const gm_device *device) { return device ? device->ctx : NULL; }

static gm_status device_figures(gm_device *device, bool managed, const char *op, gm_memory_info *out, gm_error *err) {
  gm_status status = gm__device_check(device, op, err);
  if (status == GM_OK) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status != GM_OK) return status;
  gm_memory_info info = {.struct_size = sizeof info};
  const gm__figures_subject subject = {.driver = device->driver,
                                       .info = &device->info,
                                       .device = device->handle,
                                       .thorough = true,
                                       .managed = managed,
                                       .adopted = device->adopted};
  status = gm__device_figures(&subject, &info, err);
  if (status == GM_OK) gm__sized_out(out, &info, sizeof info);
  return status;
}

gm_status gm_device_memory_info(gm_device *device, gm_memory_info *out, gm_error *err) {
  GM__UNCANCELLED();
  return device_figures(device, false, "gm_device_memory_info", out, err);
}

gm_status gm_device_managed_memory_info(gm_device *device, gm_memory_info *out, gm_error *err) {
  GM__UNCANCELLED();
  return device_figures(device, true, "gm_device_managed_memory_info", out, err);
}

gm_status gm_device_state(gm_device *device, gm_error *err) {
  GM__UNCANCELLED();
  gm_status status = gm__device_check(device, "gm_device_state", err);
  return status == GM_OK ? device->ops->device_state(device->handle, err) : status;
}

gm_status gm_device_native(gm_device *device, gm_native_device *out, gm_error *err) {
  GM__UNCANCELLED();
  gm_status status = gm__device_check(device, "gm_device_native", err);
  if (status != GM_OK) return status;
  if (!out) return gm__bad_argument(err, "gm_device_native", "`out` is NULL");
  return gm__error_of("gm_device_native", device->ops->device_native(device->handle, out, err), err);
}

gm_status gm_device_memory_type_count(gm_device *device, uint32_t *out, gm_error *err) {
  gm_status status = gm__device_check(device, "gm_device_memory_type_count", err);
  if (status != GM_OK) return status;
  if (!out) return gm__bad_argument(err, "gm_device_memory_type_count", "`out` is NULL");
  *out = device->type_count;
  return GM_OK;
}

gm_status gm_device_memory_type(gm_device *device, uint32_t index, gm_memory_type *out, gm_error *err) {
  static const char op[] = "gm_device_memory_type";
  gm_status status = gm__device_check(device, op, err);
  if (status == GM_OK) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status != GM_OK) return status;
  if (index >= device->type_count) {
    return gm__bad_argument(err, op, "`index` is %u, there are %u types", index, device->type_count);
  }
  gm__sized_out(out, &device->types[index], sizeof device->types[index]);
  return GM_OK;
}
