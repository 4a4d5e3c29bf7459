#include "backends/cuda/cuda_driver.h"

#include <stdio.h>
#include <string.h>

#include "backends/cuda/cuda_info.h"
#include "backends/cuda/cuda_kernel.h"
#include "backends/cuda/cuda_status.h"
#include "core/base/alloc.h"
#include "core/base/error.h"

enum { CUDA_MAX_DEVICES = 1024 }; /* more is taken for nonsense */

/* CUDA that was started before a fork answers a child's cuInit with NOT_INITIALIZED. */
static gm_status cuda_driver_start(gm__cuda_driver *driver, gm_error *err) {
  const CUresult code = driver->cu.cuInit(0);
  if (code == CUDA_SUCCESS) return GM_OK;
  if (code == CUDA_ERROR_NOT_INITIALIZED) {
    return gm__fail(err, GM_ERR_FORKED, (int)code, "cuInit",
                    "cuInit: CUDA_ERROR_NOT_INITIALIZED (3): CUDA was started before this process was forked, and "
                    "cannot be used in it");
  }
  if (code == CUDA_ERROR_NO_DEVICE) {
    return gm__fail(err, GM_ERR_UNAVAILABLE, (int)code, "cuInit",
                    "cuInit: CUDA_ERROR_NO_DEVICE (100): %s is there and finds no device",
                    gm__dynlib_path(driver->lib));
  }
  return gm__cuda_fail(err, code, "cuInit");
}

static gm_status cuda_driver_count(gm__cuda_driver *driver, gm_error *err) {
  int count = 0;
  const CUresult code = driver->cu.cuDeviceGetCount(&count);
  if (code != CUDA_SUCCESS) return gm__cuda_fail(err, code, "cuDeviceGetCount");
  if (count < 0 || count > CUDA_MAX_DEVICES) {
    return gm__fail(err, GM_ERR_DRIVER, 0, "cuDeviceGetCount", "the CUDA driver says that there are %d devices", count);
  }
  if (count == 0) {
    return gm__fail(err, GM_ERR_UNAVAILABLE, 0, "cuDeviceGetCount",
                    "the CUDA driver lists no device (CUDA_VISIBLE_DEVICES may hide them)");
  }
  driver->infos = gm__alloc_array(driver->services, (size_t)count, sizeof *driver->infos);
  if (!driver->infos) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "cuDeviceGetCount", "no host memory for %d devices", count);
  }
  driver->count = (uint32_t)count;
  return GM_OK;
}

static gm_status cuda_driver_list(gm__cuda_driver *driver, gm_error *err) {
  gm_status status = cuda_driver_count(driver, err);
  for (uint32_t i = 0; i < driver->count && status == GM_OK; i++) {
    status = gm__cuda_describe(driver, i, &driver->infos[i], err);
  }
  return status;
}

static gm_status cuda_driver_begin(gm__cuda_driver *driver, const gm_backend_host *host, const char *nvml,
                                   gm_error *err) {
  gm_status status = gm__cuda_load(host, &driver->lib, &driver->cu, err);
  if (status != GM_OK) return status;
  /* The driver starts threads and registers exit handlers: it cannot be unloaded again. */
  gm__dynlib_keep(driver->lib);
  status = cuda_driver_start(driver, err);
  if (status != GM_OK) return status;
  driver->wddm = gm__cuda_kernel_wsl(NULL);
  driver->nvml = gm__nvml_open(host, nvml);
  const CUresult code = driver->cu.cuDriverGetVersion(&driver->version);
  return code == CUDA_SUCCESS ? cuda_driver_list(driver, err) : gm__cuda_fail(err, code, "cuDriverGetVersion");
}

/* The one switch: "nvml=LIBRARY", where NVML is not to be looked for under its own names. */
static gm_status cuda_driver_switches(const char *options, const char **out_nvml, gm_error *err) {
  static const char key[] = "nvml=";
  const size_t length = sizeof key - 1;
  *out_nvml = NULL;
  if (!options || !*options) return GM_OK;
  if (strncmp(options, key, length) == 0 && options[length] && !strchr(options, ',')) {
    *out_nvml = options + length;
    return GM_OK;
  }
  return gm__bad_argument(err, "cuda", "the CUDA backend's one switch is nvml=LIBRARY, was given `%.100s`", options);
}

gm_status gm__cuda_driver_open(const gm_backend_host *host, gm__cuda_driver **out, gm_error *err) {
  const char *nvml = NULL;
  gm_status status = cuda_driver_switches(host->options, &nvml, err);
  if (status != GM_OK) return status;
  gm__cuda_driver *driver = gm__alloc(host->services, sizeof *driver);
  if (!driver) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "cuInit", "no host memory for the driver's record");
  driver->services = host->services;
  status = cuda_driver_begin(driver, host, nvml, err);
  if (status != GM_OK) {
    gm__cuda_driver_close(driver, GM_CLOSE_NORMAL);
    return status;
  }
  *out = driver;
  return GM_OK;
}

void gm__cuda_driver_close(gm__cuda_driver *driver, gm_close_mode mode) {
  if (!driver) return;
  gm__nvml_close(driver->nvml, mode);
  gm__release(driver->services, driver->infos, driver->count * sizeof *driver->infos);
  gm__dynlib_close(driver->lib);
  gm__release(driver->services, driver, sizeof *driver);
}

void gm__cuda_driver_version(const gm__cuda_driver *driver, char *out, size_t capacity) {
  char kernel[32] = "";
  if (!driver->cu.simulated) gm__cuda_kernel_version(NULL, kernel, sizeof kernel);
  snprintf(out, capacity, "%s%sCUDA %d.%d", kernel, kernel[0] ? ", " : "", driver->version / 1000,
           driver->version % 1000 / 10);
}
