#include "backends/cuda/cuda_driver.h"

#include <stdio.h>
#include <string.h>

#include "backends/cuda/cuda_kernel.h"
#include "backends/cuda/cuda_status.h"
#include "backends/shared/runtime/runtime_driver.h"
#include "core/base/error.h"

/* CUDA that was started before a fork answers a child's cuInit with NOT_INITIALIZED. */
static gm_status cuda_driver_init(gm__cuda_driver *driver, gm_error *err) {
  const CUresult code = driver->cu.cuInit(0);
  if (code == CUDA_SUCCESS) return GM_OK;
  if (code == CUDA_ERROR_NOT_INITIALIZED) {
    return gm__fail_native(
        err, GM_ERR_FORKED, (int)code, "cuInit",
        "cuInit: CUDA_ERROR_NOT_INITIALIZED (3): CUDA was started before this process was forked, and "
        "cannot be used in it");
  }
  if (code == CUDA_ERROR_NO_DEVICE) {
    return gm__fail_native(err, GM_ERR_UNAVAILABLE, (int)code, "cuInit",
                           "cuInit: CUDA_ERROR_NO_DEVICE (100): %s is there and finds no device",
                           gm__dynlib_path(driver->base.lib));
  }
  return gm__code_fail(&gm__cuda_codes, err, (int)code, "cuInit");
}

/* "580.65.06, CUDA 13.0"; the first part where the kernel's driver tells it. */
static gm_status cuda_driver_version(gm__cuda_driver *driver, gm_error *err) {
  gm__runtime_driver *base = &driver->base;
  char kernel[32] = "";
  int version = 0; /* 13000 is CUDA 13.0 */
  const CUresult code = driver->cu.cuDriverGetVersion(&version);
  if (code != CUDA_SUCCESS) return gm__code_fail(&gm__cuda_codes, err, (int)code, "cuDriverGetVersion");
  if (!base->simulated) gm__cuda_kernel_version(NULL, kernel, sizeof kernel);
  driver->version = version;
  snprintf(base->version, sizeof base->version, "%s%sCUDA %d.%d", kernel, kernel[0] ? ", " : "", version / 1000,
           version % 1000 / 10);
  return GM_OK;
}

static gm_status cuda_driver_list(gm__cuda_driver *driver, gm_error *err) {
  int count = 0;
  const CUresult code = driver->cu.cuDeviceGetCount(&count);
  if (code != CUDA_SUCCESS) return gm__code_fail(&gm__cuda_codes, err, (int)code, "cuDeviceGetCount");
  if (count == 0) {
    return gm__fail(err, GM_ERR_UNAVAILABLE, "cuDeviceGetCount",
                    "the CUDA driver lists no device (CUDA_VISIBLE_DEVICES may hide them)");
  }
  return gm__runtime_driver_list(&driver->base, count, "cuDeviceGetCount", err);
}

/* The library that the switch names for NVML. NULL: there is no such switch. */
static const char *cuda_driver_nvml(const char *options) {
  static const char key[] = "nvml=";
  const size_t length = sizeof key - 1;
  const bool given = strncmp(options, key, length) == 0 && options[length] && !strchr(options, ',');
  return given ? options + length : NULL;
}

gm_status gm__cuda_check_options(const char *options, gm_error *err) {
  if (!*options || cuda_driver_nvml(options)) return GM_OK;
  return gm__bad_argument(err, "cuda", "the CUDA backend's one switch is nvml=LIBRARY, was given `%.100s`", options);
}

gm_status gm__cuda_start(gm__runtime_driver *driver, gm_error *err) {
  gm__cuda_driver *starting = (gm__cuda_driver *)driver;
  gm_status status = gm__cuda_resolve(&driver->host, driver->lib, &starting->cu, err);
  if (status != GM_OK) return status;
  /* The driver starts threads and registers exit handlers: it cannot be unloaded again. */
  gm__dynlib_keep(driver->lib);
  driver->simulated = starting->cu.simulated != NULL;
  status = cuda_driver_init(starting, err);
  if (status != GM_OK) return status;
  starting->wddm = gm__cuda_kernel_wsl(NULL);
  starting->nvml = gm__nvml_open(&driver->host, cuda_driver_nvml(driver->host.options));
  status = cuda_driver_version(starting, err);
  return status == GM_OK ? cuda_driver_list(starting, err) : status;
}

void gm__cuda_stop(gm__runtime_driver *driver, gm_close_mode mode) {
  gm__nvml_close(((gm__cuda_driver *)driver)->nvml, mode);
}
