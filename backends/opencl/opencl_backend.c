#include "backends/opencl/opencl_backend.h"

#include <stdio.h>

#include "backends/opencl/opencl_driver.h"
#include "backends/opencl/opencl_entries.h"
#include "backends/opencl/opencl_icd.h"
#include "core/base/error.h"

/* This reads files only. A loader without a registered driver has nothing to offer. But a library that somebody named
 * may be a driver that needs no loader. */
static gm_status opencl_probe_passive(const gm_backend_host *host, gm_driver_info *out, gm_error *err) {
  gm__opencl_icds icds;
  gm_driver_info info = {.struct_size = sizeof info};
  gm_status status = gm__opencl_find(host, info.library, sizeof info.library, err);
  if (status != GM_OK) return status;
  gm__opencl_icds_read(&icds);
  if (icds.count == 0 && !host->library) {
    return gm__fail(err, GM_ERR_UNAVAILABLE, "gm_probe",
                    "%s is there but no driver is registered in %s; install one (Debian: pocl-opencl-icd, or the GPU "
                    "vendor's)",
                    info.library, icds.where);
  }
  status = gm__opencl_icds_check(&icds, NULL, err);
  if (status == GM_OK) *out = info;
  return status;
}

static gm_status opencl_probe_active(const gm_backend_host *host, gm_driver_info *out, gm_error *err) {
  void *made = NULL;
  const gm_status status = gm__opencl_init(host, &made, err);
  if (status != GM_OK) return status;
  const gm__opencl_driver *driver = made;
  gm_driver_info info = {.struct_size = sizeof info, .device_count = driver->count};
  info.simulated = driver->cl.simulated != NULL;
  snprintf(info.library, sizeof info.library, "%s", gm__dynlib_path(driver->lib));
  snprintf(info.version, sizeof info.version, "%s", driver->platforms);
  gm__opencl_driver_close(made);
  *out = info;
  return GM_OK;
}

gm_status gm__opencl_probe(const gm_backend_host *host, gm_probe_level level, gm_driver_info *out, gm_error *err) {
  if (level == GM_PROBE_PASSIVE) return opencl_probe_passive(host, out, err);
  return opencl_probe_active(host, out, err);
}

const gm_backend_ops gm__opencl_backend = {
    .abi = GM_BACKEND_ABI,
    .struct_size = sizeof(gm_backend_ops),
    .name = "opencl",
    .api = GM_API_OPENCL,
    .capabilities = GM_CAP_STREAMS | GM_CAP_POINTS | GM_CAP_MAPPING | GM_CAP_ADOPT | GM_CAP_COMMIT |
                    GM_CAP_COMMIT_QUEUE | GM_CAP_VIEW | GM_CAP_ADDRESS | GM_CAP_MANAGED,
#define X(entry, function) .entry = function,
#include "backends/opencl/opencl_entries.def"
#undef X
};
