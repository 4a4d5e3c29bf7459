#include "backends/cuda/cuda_open.h"

#include "backends/cuda/cuda_device.h"
#include "backends/cuda/cuda_status.h"
#include "backends/shared/native.h"
#include "backends/shared/runtime/runtime_device.h"
#include "core/base/error.h"
#include "gm/native_cuda.h"

/* Invariant: a device with the primary context holds exactly one reference on it. gm never destroys an engine's own
 * context. */

void gm__cuda_device_drop(gm__runtime_device *device) {
  const gm__cuda_device *closing = (const gm__cuda_device *)device;
  if (closing->retained) gm__cuda_of(device)->cuDevicePrimaryCtxRelease_v2(device->ordinal);
}

/* Before there is a device there is none to lose. */
static gm_status cuda_retain(gm__runtime_device *device, gm_error *err) {
  const gm__cuda_syms *cu = gm__cuda_of(device);
  CUcontext context = NULL;
  CUresult code = cu->cuDeviceGet(&device->ordinal, (int)device->info.index);
  if (code != CUDA_SUCCESS) return gm__code_fail(&gm__cuda_codes, err, (int)code, "cuDeviceGet");
  code = cu->cuDevicePrimaryCtxRetain(&context, device->ordinal);
  if (code != CUDA_SUCCESS) {
    const gm_status status = gm__code_find(&gm__cuda_codes, (int)code)->status;
    return gm__code_fail_as(&gm__cuda_codes, err, status == GM_ERR_DEVICE_LOST ? GM_ERR_UNAVAILABLE : status, (int)code,
                            "cuDevicePrimaryCtxRetain");
  }
  if (!context) {
    cu->cuDevicePrimaryCtxRelease_v2(device->ordinal); /* success means a reference, whatever came with it */
    return gm__runtime_nonsense(device, "cuDevicePrimaryCtxRetain", "gave no context", err);
  }
  device->context = context;
  ((gm__cuda_device *)device)->retained = true;
  return GM_OK;
}

gm_status gm__cuda_device_open(void *driver, uint32_t index, void **out_device, gm_error *err) {
  gm__runtime_device *device = NULL;
  gm_status status = gm__runtime_device_make(driver, index, &device, err);
  if (status != GM_OK) return status;
  status = cuda_retain(device, err);
  if (status != GM_OK) {
    gm__runtime_device_discard(device);
    return status;
  }
  gm__runtime_device_try(device);
  *out_device = device;
  return GM_OK;
}

/* Find the device of an engine's context. CUDA answers for the current context only. */
static gm_status cuda_adopt_ordinal(const gm__cuda_syms *cu, CUcontext context, CUdevice *out, gm_error *err) {
  CUcontext popped = NULL;
  CUresult code = cu->cuCtxPushCurrent_v2(context);
  if (code != CUDA_SUCCESS) return gm__code_fail(&gm__cuda_codes, err, (int)code, "cuCtxPushCurrent");
  code = cu->cuCtxGetDevice(out);
  const CUresult back = cu->cuCtxPopCurrent_v2(&popped);
  if (code == CUDA_SUCCESS) code = back;
  return code == CUDA_SUCCESS ? GM_OK : gm__code_fail(&gm__cuda_codes, err, (int)code, "cuCtxGetDevice");
}

/* A CUdevice is a number, and gm's index is the same number. Any other number would be a device that the driver did not
 * list. */
static gm_status cuda_adopt_context(gm__cuda_driver *driver, CUcontext context, void **out_device, gm_error *err) {
  gm__runtime_device *device = NULL;
  CUdevice ordinal = -1;
  gm_status status = cuda_adopt_ordinal(&driver->cu, context, &ordinal, err);
  if (status != GM_OK) return status;
  status = gm__runtime_device_make(&driver->base, ordinal < 0 ? UINT32_MAX : (uint32_t)ordinal, &device, err);
  if (status != GM_OK) return status;
  device->context = context;
  gm__runtime_device_try(device);
  *out_device = device;
  return GM_OK;
}

gm_status gm__cuda_device_adopt(void *driver, const gm_native_device *native, void **out_device, gm_error *err) {
  gm_cuda_device lent;
  const gm_status status = gm__native_in(&lent, sizeof lent, native, GM_API_CUDA, "cuda", "native", err);
  if (status != GM_OK) return status;
  if (lent.context) return cuda_adopt_context(driver, (CUcontext)lent.context, out_device, err);
  if (lent.ordinal < 0) return gm__bad_argument(err, "cuda", "`ordinal` must not be negative, is %d", lent.ordinal);
  return gm__cuda_device_open(driver, (uint32_t)lent.ordinal, out_device, err);
}
