#include "backends/hip/hip_driver.h"

#include <stdio.h>

#include "backends/hip/hip_info.h"
#include "backends/hip/hip_status.h"
#include "core/base/alloc.h"
#include "core/base/error.h"

enum { HIP_MAX_DEVICES = 1024 }; /* more is taken for nonsense */

static gm_status hip_driver_no_device(const gm__hip_driver *driver, hipError_t code, const char *op, gm_error *err) {
  return gm__fail(err, GM_ERR_UNAVAILABLE, (int)code, op,
                  "%s: %s (%d): %s is there and finds no device (HIP_VISIBLE_DEVICES or ROCR_VISIBLE_DEVICES may hide "
                  "them)",
                  op, gm__hip_code_name((int)code), (int)code, gm__dynlib_path(driver->lib));
}

/* Without a GPU hipInit answers 101 and hipGetDeviceCount 100; of some versions hipInit says success. */
static gm_status hip_driver_start(gm__hip_driver *driver, gm_error *err) {
  hipError_t code = driver->hip.hipInit(0);
  if (code == hipErrorNoDevice || code == hipErrorInvalidDevice) {
    return hip_driver_no_device(driver, code, "hipInit", err);
  }
  if (code != hipSuccess) return gm__hip_fail(err, code, "hipInit");
  code = driver->hip.hipRuntimeGetVersion(&driver->version);
  return code == hipSuccess ? GM_OK : gm__hip_fail(err, code, "hipRuntimeGetVersion");
}

static gm_status hip_driver_count(gm__hip_driver *driver, gm_error *err) {
  int count = 0;
  const hipError_t code = driver->hip.hipGetDeviceCount(&count);
  if (code == hipErrorNoDevice || (code == hipSuccess && count == 0)) {
    return hip_driver_no_device(driver, hipErrorNoDevice, "hipGetDeviceCount", err);
  }
  if (code != hipSuccess) return gm__hip_fail(err, code, "hipGetDeviceCount");
  if (count < 0 || count > HIP_MAX_DEVICES) {
    return gm__fail(err, GM_ERR_DRIVER, 0, "hipGetDeviceCount", "HIP says that there are %d devices", count);
  }
  driver->infos = gm__alloc_array(driver->services, (size_t)count, sizeof *driver->infos);
  if (!driver->infos) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "hipGetDeviceCount", "no host memory for %d devices", count);
  }
  driver->count = (uint32_t)count;
  return GM_OK;
}

static gm_status hip_driver_list(gm__hip_driver *driver, gm_error *err) {
  gm_status status = hip_driver_count(driver, err);
  for (uint32_t i = 0; i < driver->count && status == GM_OK; i++) {
    status = gm__hip_describe(driver, i, &driver->infos[i], err);
  }
  return status;
}

static gm_status hip_driver_begin(gm__hip_driver *driver, const gm_backend_host *host, gm_error *err) {
  gm_status status = gm__hip_load(host, &driver->lib, &driver->hip, err);
  if (status != GM_OK) return status;
  /* The runtime starts threads and registers exit handlers: it cannot be unloaded again. */
  gm__dynlib_keep(driver->lib);
  const bool clean = gm__hip_thread_clean(&driver->hip);
  status = hip_driver_start(driver, err);
  if (status == GM_OK) status = hip_driver_list(driver, err);
  gm__hip_thread_wipe(&driver->hip, clean);
  return status;
}

bool gm__hip_thread_clean(const gm__hip_syms *hip) { return hip->hipPeekAtLastError() == hipSuccess; }

void gm__hip_thread_wipe(const gm__hip_syms *hip, bool clean) {
  if (clean) hip->hipGetLastError();
}

gm_status gm__hip_driver_open(const gm_backend_host *host, gm__hip_driver **out, gm_error *err) {
  if (host->options && *host->options) {
    return gm__bad_argument(err, "hip", "the HIP backend has no switches, was given `%.100s`", host->options);
  }
  gm__hip_driver *driver = gm__alloc(host->services, sizeof *driver);
  if (!driver) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "hipInit", "no host memory for the driver's record");
  driver->services = host->services;
  driver->host = *host;
  const gm_status status = hip_driver_begin(driver, host, err);
  if (status != GM_OK) {
    gm__hip_driver_close(driver);
    return status;
  }
  *out = driver;
  return GM_OK;
}

void gm__hip_driver_close(gm__hip_driver *driver) {
  if (!driver) return;
  gm__release(driver->services, driver->infos, driver->count * sizeof *driver->infos);
  gm__dynlib_close(driver->lib);
  gm__release(driver->services, driver, sizeof *driver);
}

void gm__hip_driver_version(const gm__hip_driver *driver, char *out, size_t capacity) {
  snprintf(out, capacity, "HIP %d.%d.%d", driver->version / 10000000, driver->version / 100000 % 100,
           driver->version % 100000);
}
