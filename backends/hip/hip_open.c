#include "backends/hip/hip_open.h"

#include "backends/hip/hip_range.h"
#include "backends/shared/native.h"
#include "backends/shared/runtime/runtime_device.h"
#include "core/base/error.h"
#include "gm/native_hip.h"

/* HIP keeps one context per device for the life of the process. So opening takes nothing that closing must give back,
 * and adopting is the same as opening. */

void gm__hip_device_init(gm__runtime_device *device) {
  gm__hip_device *made = (gm__hip_device *)device;
  gm__mutex_init(&made->ranges_lock, GM__RANK_STAGING);
}

void gm__hip_device_clear(gm__runtime_device *device) {
  gm__hip_device *closing = (gm__hip_device *)device;
  while (closing->ranges) {
    gm__hip_range_discard(closing, gm__hip_range_remove(closing, closing->ranges->address));
  }
  gm__mutex_destroy(&closing->ranges_lock);
}

/* Entering shows whether the device answers: hipSetDevice makes its context. */
gm_status gm__hip_device_open(void *driver, uint32_t index, void **out_device, gm_error *err) {
  gm__runtime_device *device = NULL;
  gm__runtime_scope scope;
  gm_status status = gm__runtime_device_make(driver, index, &device, err);
  if (status != GM_OK) return status;
  status = gm__runtime_enter(device, &scope, err);
  if (status != GM_OK) {
    gm__runtime_device_discard(device);
    return status;
  }
  gm__runtime_leave(device, &scope);
  gm__runtime_device_try(device);
  *out_device = device;
  return GM_OK;
}

gm_status gm__hip_device_adopt(void *driver, const gm_native_device *native, void **out_device, gm_error *err) {
  gm_hip_device lent;
  const gm_status status = gm__native_in(&lent, sizeof lent, native, GM_API_HIP, "hip", "native", err);
  if (status != GM_OK) return status;
  if (lent.context) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "hip",
                    "`context` must be 0: a device of HIP has one context, that of its ordinal");
  }
  if (lent.ordinal < 0) return gm__bad_argument(err, "hip", "`ordinal` must not be negative, is %d", lent.ordinal);
  return gm__hip_device_open(driver, (uint32_t)lent.ordinal, out_device, err);
}
