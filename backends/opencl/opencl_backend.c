#include "backends/opencl/opencl_backend.h"

#include <stdio.h>

#include "backends/opencl/opencl_commit.h"
#include "backends/opencl/opencl_copy.h"
#include "backends/opencl/opencl_icd.h"
#include "backends/opencl/opencl_managed.h"
#include "backends/opencl/opencl_map.h"
#include "backends/opencl/opencl_mem.h"
#include "backends/opencl/opencl_point.h"
#include "backends/opencl/opencl_rect.h"
#include "backends/opencl/opencl_stream.h"
#include "core/base/error.h"

/* Files only. A loader without a registered driver has nothing to offer, unless the library was named: that may be a
 * driver that needs no loader. */
static gm_status opencl_probe_passive(const gm_backend_host *host, gm_driver_info *out, gm_error *err) {
  gm__opencl_icds icds;
  gm_driver_info info = {.struct_size = sizeof info};
  gm_status status = gm__opencl_find(host, info.library, sizeof info.library, err);
  if (status != GM_OK) return status;
  gm__opencl_icds_read(&icds);
  if (icds.count == 0 && !host->library) {
    return gm__fail(err, GM_ERR_UNAVAILABLE, 0, "gm_probe",
                    "%s is there but no driver is registered in %s; install one (Debian: pocl-opencl-icd, or the GPU "
                    "vendor's)",
                    info.library, icds.where);
  }
  status = gm__opencl_icds_check(&icds, NULL, err);
  if (status == GM_OK) *out = info;
  return status;
}

static gm_status opencl_probe_active(const gm_backend_host *host, gm_driver_info *out, gm_error *err) {
  gm__opencl_driver *driver = NULL;
  const gm_status status = gm__opencl_driver_open(host, &driver, err);
  if (status != GM_OK) return status;
  gm_driver_info info = {.struct_size = sizeof info, .device_count = driver->count};
  info.simulated = driver->cl.simulated != NULL;
  snprintf(info.library, sizeof info.library, "%s", gm__dynlib_path(driver->lib));
  snprintf(info.version, sizeof info.version, "%s", driver->platforms);
  gm__opencl_driver_close(driver);
  *out = info;
  return GM_OK;
}

static gm_status opencl_probe(const gm_backend_host *host, gm_probe_level level, gm_driver_info *out, gm_error *err) {
  if (level == GM_PROBE_PASSIVE) return opencl_probe_passive(host, out, err);
  return opencl_probe_active(host, out, err);
}

static gm_status opencl_init(const gm_backend_host *host, void **out_driver, gm_error *err) {
  gm__opencl_driver *driver = NULL;
  const gm_status status = gm__opencl_driver_open(host, &driver, err);
  if (status == GM_OK) *out_driver = driver;
  return status;
}

/* Nothing of the driver is called in either mode. */
static void opencl_fini(void *driver, gm_close_mode mode) {
  (void)mode;
  gm__opencl_driver_close(driver);
}

const gm_backend_ops gm__opencl_backend = {
    .abi = GM_BACKEND_ABI,
    .struct_size = sizeof(gm_backend_ops),
    .name = "opencl",
    .api = GM_API_OPENCL,
    .capabilities = GM_CAP_STREAMS | GM_CAP_POINTS | GM_CAP_MAPPING | GM_CAP_ADOPT | GM_CAP_COMMIT |
                    GM_CAP_COMMIT_QUEUE | GM_CAP_VIEW | GM_CAP_ADDRESS | GM_CAP_MANAGED,
    .probe = opencl_probe,
    .init = opencl_init,
    .fini = opencl_fini,
    .device_count = gm__opencl_device_count,
    .device_info = gm__opencl_device_info,
    .device_open = gm__opencl_device_open,
    .device_close = gm__opencl_device_close,
    .device_state = gm__opencl_device_state,
    .device_native = gm__opencl_device_native,
    .device_adopt = gm__opencl_device_adopt,
    .device_adopt_alone = gm__opencl_device_adopt_alone,
    .stream_adopt = gm__opencl_stream_adopt,
    .point_import = gm__opencl_point_import,
    .point_native = gm__opencl_point_native,
    .memory_wrap = gm__opencl_memory_wrap,
    .figures = gm__opencl_device_figures,
    .memory_type_count = gm__opencl_memory_type_count,
    .memory_type = gm__opencl_memory_type,
    .memory_alloc = gm__opencl_memory_alloc,
    .memory_free = gm__opencl_memory_free,
    .memory_native = gm__opencl_memory_native,
    .view_create = gm__opencl_view_create,
    .view_destroy = gm__opencl_view_destroy,
    .map = gm__opencl_map,
    .unmap = gm__opencl_unmap,
    .flush = gm__opencl_map_sync,
    .invalidate = gm__opencl_map_sync,
    .commit = gm__opencl_commit,
    .stream_create = gm__opencl_stream_create,
    .stream_close = gm__opencl_stream_close,
    .stream_flush = gm__opencl_stream_flush,
    .stream_sync = gm__opencl_stream_sync,
    .point_record = gm__opencl_point_record,
    .point_done = gm__opencl_point_done,
    .point_wait = gm__opencl_point_wait,
    .point_wait_on = gm__opencl_point_wait_on,
    .stream_barrier = gm__opencl_stream_barrier,
    .point_release = gm__opencl_point_release,
    .stream_same = gm__opencl_stream_same,
    .point_copy = gm__opencl_point_copy,
    .copy_to_device = gm__opencl_copy_to_device,
    .copy_to_host = gm__opencl_copy_to_host,
    .copy = gm__opencl_copy,
    .fill = gm__opencl_fill,
    .rect_to_device = gm__opencl_rect_to_device,
    .rect_to_host = gm__opencl_rect_to_host,
    .rect_copy = gm__opencl_rect_copy,
    .copy_many = gm__opencl_copy_many,
    .managed_prefetch = gm__opencl_managed_prefetch,
    .managed_advise = gm__opencl_managed_advise,
};
