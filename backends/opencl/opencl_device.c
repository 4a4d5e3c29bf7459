#include "backends/opencl/opencl_device.h"

#include <string.h>

#include "backends/opencl/opencl_entries.h"
#include "backends/opencl/opencl_status.h"
#include "backends/shared/native.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "gm/native_opencl.h"

gm_status gm__opencl_device_fail(gm__opencl_device *device, cl_int code, bool waited, const char *op, gm_error *err) {
  const bool nvidia_dead = waited && code == CL_OUT_OF_RESOURCES && strcmp(device->info.driver, "nvidia") == 0;
  if (nvidia_dead || gm__opencl_status(code) == GM_ERR_DEVICE_LOST) {
    int32_t none = 0;
    atomic_compare_exchange_strong(&device->lost, &none, code);
    return gm__fail_native(err, GM_ERR_DEVICE_LOST, code, op, "%s: %s (%d): the device is lost; close and reopen it",
                           op, gm__opencl_code_name(code), code);
  }
  return gm__opencl_fail(err, code, op);
}

gm_status gm__opencl_check(gm__opencl_device *device, cl_int code, const char *op, gm_error *err) {
  return code == CL_SUCCESS ? GM_OK : gm__opencl_device_fail(device, code, false, op, err);
}

enum { OPENCL_MAX_DEPTH = 8 };

bool gm__opencl_device_within(const gm__opencl_syms *cl, cl_device_id part, cl_device_id whole) {
  for (int depth = 0; part && depth < OPENCL_MAX_DEPTH; depth++) {
    cl_device_id parent = NULL;
    if (part == whole) return true;
    if (cl->clGetDeviceInfo(part, CL_DEVICE_PARENT_DEVICE, sizeof parent, &parent, NULL) != CL_SUCCESS) return false;
    part = parent;
  }
  return false;
}

gm_status gm__opencl_device_state(void *device, gm_error *err) {
  gm__opencl_device *opened = device;
  const int32_t code = atomic_load(&opened->lost);
  if (code) {
    return gm__fail_native(err, GM_ERR_DEVICE_LOST, code, "opencl", "%s answered %s (%d); close and reopen it",
                           opened->info.name, gm__opencl_code_name(code), code);
  }
  cl_bool available = CL_TRUE;
  const cl_int asked = opened->cl->clGetDeviceInfo(opened->id, CL_DEVICE_AVAILABLE, sizeof available, &available, NULL);
  if (asked == CL_SUCCESS && !available) {
    return gm__opencl_device_fail(opened, CL_DEVICE_NOT_AVAILABLE, false, "clGetDeviceInfo", err);
  }
  return GM_OK;
}

gm_status gm__opencl_device_native(void *device, gm_native_device *out, gm_error *err) {
  const gm__opencl_device *opened = device;
  gm_opencl_device native = {.head = *out};
  const gm_status status = gm__native_check(out, sizeof native, GM_API_OPENCL, "opencl", "out", err);
  if (status != GM_OK) return status;
  native.device = (uintptr_t)opened->id;
  native.context = (uintptr_t)opened->context;
  native.allow_queue = opened->allow_queue;
  gm__sized_out(out, &native, sizeof native);
  return GM_OK;
}
