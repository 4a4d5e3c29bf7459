#include "backends/hip/hip_driver.h"

#include <stdio.h>

#include "backends/hip/hip_status.h"
#include "backends/shared/runtime/runtime_driver.h"
#include "core/base/error.h"

static gm_status hip_driver_no_device(const gm__hip_driver *driver, hipError_t code, const char *op, gm_error *err) {
  return gm__fail_native(
      err, GM_ERR_UNAVAILABLE, (int)code, op,
      "%s: %s (%d): %s is there and finds no device (HIP_VISIBLE_DEVICES or ROCR_VISIBLE_DEVICES may hide "
      "them)",
      op, gm__code_find(&gm__hip_codes, (int)code)->name, (int)code, gm__dynlib_path(driver->base.lib));
}

/* Without a GPU, hipInit answers 101 and hipGetDeviceCount 100. Some versions of hipInit answer success. */
static gm_status hip_driver_init(gm__hip_driver *driver, gm_error *err) {
  gm__runtime_driver *base = &driver->base;
  hipError_t code = driver->hip.hipInit(0);
  if (code == hipErrorNoDevice || code == hipErrorInvalidDevice) {
    return hip_driver_no_device(driver, code, "hipInit", err);
  }
  if (code != hipSuccess) return gm__code_fail(&gm__hip_codes, err, (int)code, "hipInit");
  code = driver->hip.hipRuntimeGetVersion(&driver->version);
  if (code != hipSuccess) return gm__code_fail(&gm__hip_codes, err, (int)code, "hipRuntimeGetVersion");
  snprintf(base->version, sizeof base->version, "HIP %d.%d.%d", driver->version / 10000000,
           driver->version / 100000 % 100, driver->version % 100000);
  return GM_OK;
}

static gm_status hip_driver_list(gm__hip_driver *driver, gm_error *err) {
  int count = 0;
  const hipError_t code = driver->hip.hipGetDeviceCount(&count);
  if (code == hipErrorNoDevice || (code == hipSuccess && count == 0)) {
    return hip_driver_no_device(driver, hipErrorNoDevice, "hipGetDeviceCount", err);
  }
  if (code != hipSuccess) return gm__code_fail(&gm__hip_codes, err, (int)code, "hipGetDeviceCount");
  return gm__runtime_driver_list(&driver->base, count, "hipGetDeviceCount", err);
}

bool gm__hip_thread_clean(const gm__hip_syms *hip) { return hip->hipPeekAtLastError() == hipSuccess; }

void gm__hip_thread_wipe(const gm__hip_syms *hip, bool clean) {
  if (clean) hip->hipGetLastError();
}

gm_status gm__hip_check_options(const char *options, gm_error *err) {
  if (!*options) return GM_OK;
  return gm__bad_argument(err, "hip", "the HIP backend has no switches, was given `%.100s`", options);
}

gm_status gm__hip_start(gm__runtime_driver *driver, gm_error *err) {
  gm__hip_driver *starting = (gm__hip_driver *)driver;
  gm_status status = gm__hip_resolve(&driver->host, driver->lib, &starting->hip, err);
  if (status != GM_OK) return status;
  /* The runtime starts threads and registers exit handlers: it cannot be unloaded again. */
  gm__dynlib_keep(driver->lib);
  driver->simulated = starting->hip.simulated != NULL;
  const bool clean = gm__hip_thread_clean(&starting->hip);
  status = hip_driver_init(starting, err);
  if (status == GM_OK) status = hip_driver_list(starting, err);
  gm__hip_thread_wipe(&starting->hip, clean);
  return status;
}
