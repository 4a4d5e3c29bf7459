#include "backends/hip/hip_backend.h"

#include <stdio.h>

#include "backends/hip/hip_copy.h"
#include "backends/hip/hip_host.h"
#include "backends/hip/hip_kernel.h"
#include "backends/hip/hip_managed.h"
#include "backends/hip/hip_mem.h"
#include "backends/hip/hip_peer.h"
#include "backends/hip/hip_point.h"
#include "backends/hip/hip_rect.h"
#include "backends/hip/hip_share.h"
#include "backends/hip/hip_stream.h"
#include "backends/hip/hip_vmm.h"
#include "backends/hip/hip_wrap.h"
#include "core/base/error.h"

/* Files only. A library whose kernel part is not loaded has nothing to offer, unless the library was named: that may be
 * one that needs none. */
static gm_status hip_probe_passive(const gm_backend_host *host, gm_driver_info *out, gm_error *err) {
  gm_driver_info info = {.struct_size = sizeof info};
  const gm_status status = gm__hip_find(host, info.library, sizeof info.library, err);
  if (status != GM_OK) return status;
  if (!host->library) {
    if (!gm__hip_kernel_present(NULL)) {
      return gm__fail(err, GM_ERR_UNAVAILABLE, 0, "gm_probe",
                      "%s is there but AMD's kernel driver is not loaded (no /sys/class/kfd)", info.library);
    }
    info.device_count = gm__hip_kernel_cards(NULL);
  }
  *out = info;
  return GM_OK;
}

static gm_status hip_probe_active(const gm_backend_host *host, gm_driver_info *out, gm_error *err) {
  gm__hip_driver *driver = NULL;
  const gm_status status = gm__hip_driver_open(host, &driver, err);
  if (status != GM_OK) return status;
  gm_driver_info info = {.struct_size = sizeof info, .device_count = driver->count};
  info.simulated = driver->hip.simulated != NULL;
  snprintf(info.library, sizeof info.library, "%s", gm__dynlib_path(driver->lib));
  gm__hip_driver_version(driver, info.version, sizeof info.version);
  gm__hip_driver_close(driver);
  *out = info;
  return GM_OK;
}

static gm_status hip_probe(const gm_backend_host *host, gm_probe_level level, gm_driver_info *out, gm_error *err) {
  if (level == GM_PROBE_PASSIVE) return hip_probe_passive(host, out, err);
  return hip_probe_active(host, out, err);
}

static gm_status hip_init(const gm_backend_host *host, void **out_driver, gm_error *err) {
  gm__hip_driver *driver = NULL;
  const gm_status status = gm__hip_driver_open(host, &driver, err);
  if (status == GM_OK) *out_driver = driver;
  return status;
}

/* Nothing of HIP is called, in either mode. */
static void hip_fini(void *driver, gm_close_mode mode) {
  (void)mode;
  gm__hip_driver_close(driver);
}

const gm_backend_ops gm__hip_backend = {
    .abi = GM_BACKEND_ABI,
    .struct_size = sizeof(gm_backend_ops),
    .name = "hip",
    .api = GM_API_HIP,
    .capabilities = GM_CAP_STREAMS | GM_CAP_POINTS | GM_CAP_MAPPING | GM_CAP_VMM | GM_CAP_PEER | GM_CAP_SHARE |
                    GM_CAP_MANAGED | GM_CAP_REGISTRATION | GM_CAP_ADOPT | GM_CAP_ADDRESS,
    .probe = hip_probe,
    .init = hip_init,
    .fini = hip_fini,
    .device_count = gm__hip_device_count,
    .device_info = gm__hip_device_info,
    .device_open = gm__hip_device_open,
    .device_close = gm__hip_device_close,
    .device_state = gm__hip_device_state,
    .device_native = gm__hip_device_native,
    .device_adopt = gm__hip_device_adopt,
    .stream_adopt = gm__hip_stream_adopt,
    .point_import = gm__hip_point_import,
    .point_native = gm__hip_point_native,
    .memory_wrap = gm__hip_memory_wrap,
    .figures = gm__hip_device_figures,
    .memory_type_count = gm__hip_memory_type_count,
    .memory_type = gm__hip_memory_type,
    .memory_alloc = gm__hip_memory_alloc,
    .memory_free = gm__hip_memory_free,
    .memory_native = gm__hip_memory_native,
    .map = gm__hip_map,
    .unmap = gm__pointer_unmap,
    .flush = gm__pointer_map_sync,
    .invalidate = gm__pointer_map_sync,
    .stream_create = gm__hip_stream_create,
    .stream_close = gm__hip_stream_close,
    .stream_flush = gm__hip_stream_flush,
    .stream_sync = gm__hip_stream_sync,
    .point_record = gm__hip_point_record,
    .point_done = gm__hip_point_done,
    .point_wait = gm__hip_point_wait,
    .point_wait_on = gm__hip_point_wait_on,
    .stream_barrier = gm__hip_stream_barrier,
    .point_release = gm__hip_point_release,
    .stream_same = gm__hip_stream_same,
    .point_copy = gm__hip_point_copy,
    .stream_capturing = gm__hip_stream_capturing,
    .copy_to_device = gm__hip_copy_to_device,
    .copy_to_host = gm__hip_copy_to_host,
    .copy = gm__hip_copy,
    .fill = gm__hip_fill,
    .rect_to_device = gm__hip_rect_to_device,
    .rect_to_host = gm__hip_rect_to_host,
    .rect_copy = gm__hip_rect_copy,
    .copy_many = gm__hip_copy_many,
    .host_register = gm__hip_host_register,
    .host_unregister = gm__hip_host_unregister,
    .vmm_granularity = gm__hip_vmm_granularity,
    .vmm_reserve = gm__hip_vmm_reserve,
    .vmm_unreserve = gm__hip_vmm_unreserve,
    .vmm_create = gm__hip_vmm_create,
    .vmm_destroy = gm__hip_vmm_destroy,
    .vmm_map = gm__hip_vmm_map,
    .vmm_unmap = gm__hip_vmm_unmap,
    .vmm_access = gm__hip_vmm_access,
    .peer_info = gm__hip_peer_info,
    .peer_enable = gm__hip_peer_enable,
    .peer_disable = gm__hip_peer_disable,
    .peer_access = gm__hip_peer_access,
    .peer_copy = gm__hip_peer_copy,
    .share_export = gm__hip_share_export,
    .share_import = gm__hip_share_import,
    .share_close = gm__hip_share_close,
    .share_export_vmm = gm__hip_share_export_vmm,
    .share_import_vmm = gm__hip_share_import_vmm,
    .managed_prefetch = gm__hip_managed_prefetch,
    .managed_advise = gm__hip_managed_advise,
};
