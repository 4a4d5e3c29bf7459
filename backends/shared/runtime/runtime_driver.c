#include "backends/shared/runtime/runtime_driver.h"

#include <stdio.h>
#include <string.h>

#include "backends/shared/runtime/runtime_entries.h"
#include "core/base/alloc.h"
#include "core/base/error.h"

enum { DRIVER_MAX_DEVICES = 1024 }; /* more is taken for nonsense */

gm_status gm__runtime_driver_list(gm__runtime_driver *driver, int count, const char *op, gm_error *err) {
  gm_status status = GM_OK;
  if (count < 0 || count > DRIVER_MAX_DEVICES) {
    return gm__fail(err, GM_ERR_DRIVER, op, "%s says that there are %d devices", driver->api->codes->speaker, count);
  }
  driver->infos = gm__alloc_array(driver->services, (size_t)count, sizeof *driver->infos);
  if (!driver->infos) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for %d devices", count);
  }
  driver->count = (uint32_t)count;
  for (uint32_t i = 0; i < driver->count && status == GM_OK; i++) {
    status = driver->api->describe(driver, i, &driver->infos[i], err);
  }
  return status;
}

static void driver_close(gm__runtime_driver *driver, gm_close_mode mode) {
  if (driver->api->stop) driver->api->stop(driver, mode);
  gm__release(driver->services, driver->infos, driver->count * sizeof *driver->infos);
  gm__dynlib_close(driver->lib);
  gm__release(driver->services, driver, driver->api->driver_bytes);
}

static gm_status driver_open(const gm__runtime *api, const gm_backend_host *host, gm__runtime_driver **out,
                             gm_error *err) {
  const gm__dynlib_spec spec = api->library(host);
  const char *options = host->options ? host->options : "";
  gm_status status = api->check_options(options, err);
  if (status != GM_OK) return status;
  gm__runtime_driver *driver = gm__alloc(host->services, api->driver_bytes);
  if (!driver) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, api->init_op, "no host memory for the driver's record");
  }
  driver->api = api;
  driver->services = host->services;
  driver->host = *host;
  driver->host.options = options;
  status = gm__dynlib_open(host->services, &spec, &driver->lib, err);
  if (status == GM_OK) status = api->start(driver, err);
  if (status != GM_OK) {
    driver_close(driver, GM_CLOSE_NORMAL);
    return status;
  }
  *out = driver;
  return GM_OK;
}

/* Where the library is, told from files alone. */
static gm_status driver_find(const gm__runtime *api, const gm_backend_host *host, char *out, size_t capacity,
                             gm_error *err) {
  const gm__dynlib_spec spec = api->library(host);
  char tried[128] = "";
  if (gm__dynlib_find(&spec, out, capacity)) return GM_OK;
  if (host->library) {
    return gm__fail(err, GM_ERR_UNAVAILABLE, "gm_probe", "%s not found; %s", host->library, spec.advice);
  }
  for (size_t i = 0; spec.names[i]; i++) {
    const size_t length = strlen(tried);
    snprintf(tried + length, sizeof tried - length, "%s%s", i ? ", " : "", spec.names[i]);
  }
  return gm__fail(err, GM_ERR_UNAVAILABLE, "gm_probe", "%s not found (tried %s); %s", spec.names[0], tried,
                  spec.advice);
}

/* Reads files only. A library is useless while its kernel part is not loaded. A library that was named may need no
 * kernel part. */
static gm_status driver_probe_passive(const gm__runtime *api, const gm_backend_host *host, gm_driver_info *out,
                                      gm_error *err) {
  gm_driver_info info = {.struct_size = sizeof info};
  const gm_status status = driver_find(api, host, info.library, sizeof info.library, err);
  if (status != GM_OK) return status;
  if (!host->library && !api->kernel_present(NULL)) {
    return gm__fail(err, GM_ERR_UNAVAILABLE, "gm_probe", "%s is there but %s kernel driver is not loaded (no %s)",
                    info.library, api->kernel_owner, api->kernel_trace);
  }
  if (!host->library) {
    info.device_count = api->kernel_cards(NULL);
    if (api->kernel_version) api->kernel_version(NULL, info.version, sizeof info.version);
  }
  *out = info;
  return GM_OK;
}

static gm_status driver_probe_active(const gm__runtime *api, const gm_backend_host *host, gm_driver_info *out,
                                     gm_error *err) {
  gm__runtime_driver *driver = NULL;
  const gm_status status = driver_open(api, host, &driver, err);
  if (status != GM_OK) return status;
  gm_driver_info info = {.struct_size = sizeof info, .device_count = driver->count, .simulated = driver->simulated};
  snprintf(info.library, sizeof info.library, "%s", gm__dynlib_path(driver->lib));
  snprintf(info.version, sizeof info.version, "%s", driver->version);
  driver_close(driver, GM_CLOSE_NORMAL);
  *out = info;
  return GM_OK;
}

gm_status gm__runtime_probe(const gm__runtime *api, const gm_backend_host *host, gm_probe_level level,
                            gm_driver_info *out, gm_error *err) {
  if (level == GM_PROBE_PASSIVE) return driver_probe_passive(api, host, out, err);
  return driver_probe_active(api, host, out, err);
}

gm_status gm__runtime_init(const gm__runtime *api, const gm_backend_ops *ops, const gm_backend_host *host,
                           void **out_driver, gm_error *err) {
  gm__runtime_driver *driver = NULL;
  const gm_status status = driver_open(api, host, &driver, err);
  if (status != GM_OK) return status;
  driver->ops = ops;
  *out_driver = driver;
  return GM_OK;
}

void gm__runtime_fini(void *driver, gm_close_mode mode) {
  gm__runtime_driver *closing = driver;
  if (closing) driver_close(closing, mode);
}
