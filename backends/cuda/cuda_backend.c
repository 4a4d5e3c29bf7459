#include "backends/cuda/cuda_backend.h"

#include <stdio.h>

#include "backends/cuda/cuda_copy.h"
#include "backends/cuda/cuda_host.h"
#include "backends/cuda/cuda_kernel.h"
#include "backends/cuda/cuda_managed.h"
#include "backends/cuda/cuda_mem.h"
#include "backends/cuda/cuda_peer.h"
#include "backends/cuda/cuda_point.h"
#include "backends/cuda/cuda_rect.h"
#include "backends/cuda/cuda_share.h"
#include "backends/cuda/cuda_stream.h"
#include "backends/cuda/cuda_vmm.h"
#include "core/base/error.h"

/* Files only. A library whose kernel part is not loaded has nothing to offer, unless the library was named: that may be
 * a driver that needs none. */
static gm_status cuda_probe_passive(const gm_backend_host *host, gm_driver_info *out, gm_error *err) {
  gm_driver_info info = {.struct_size = sizeof info};
  const gm_status status = gm__cuda_find(host, info.library, sizeof info.library, err);
  if (status != GM_OK) return status;
  if (!host->library) {
    if (!gm__cuda_kernel_present(NULL)) {
      return gm__fail(err, GM_ERR_UNAVAILABLE, 0, "gm_probe",
                      "%s is there but NVIDIA's kernel driver is not loaded (no /proc/driver/nvidia)", info.library);
    }
    info.device_count = gm__cuda_kernel_cards(NULL);
    gm__cuda_kernel_version(NULL, info.version, sizeof info.version);
  }
  *out = info;
  return GM_OK;
}

static gm_status cuda_probe_active(const gm_backend_host *host, gm_driver_info *out, gm_error *err) {
  gm__cuda_driver *driver = NULL;
  const gm_status status = gm__cuda_driver_open(host, &driver, err);
  if (status != GM_OK) return status;
  gm_driver_info info = {.struct_size = sizeof info, .device_count = driver->count};
  info.simulated = driver->cu.simulated != NULL;
  snprintf(info.library, sizeof info.library, "%s", gm__dynlib_path(driver->lib));
  gm__cuda_driver_version(driver, info.version, sizeof info.version);
  gm__cuda_driver_close(driver, GM_CLOSE_NORMAL);
  *out = info;
  return GM_OK;
}

static gm_status cuda_probe(const gm_backend_host *host, gm_probe_level level, gm_driver_info *out, gm_error *err) {
  if (level == GM_PROBE_PASSIVE) return cuda_probe_passive(host, out, err);
  return cuda_probe_active(host, out, err);
}

static gm_status cuda_init(const gm_backend_host *host, void **out_driver, gm_error *err) {
  gm__cuda_driver *driver = NULL;
  const gm_status status = gm__cuda_driver_open(host, &driver, err);
  if (status == GM_OK) *out_driver = driver;
  return status;
}

static void cuda_fini(void *driver, gm_close_mode mode) { gm__cuda_driver_close(driver, mode); }

const gm_backend_ops gm__cuda_backend = {
    .abi = GM_BACKEND_ABI,
    .struct_size = sizeof(gm_backend_ops),
    .name = "cuda",
    .api = GM_API_CUDA,
    .capabilities = GM_CAP_STREAMS | GM_CAP_POINTS | GM_CAP_MAPPING | GM_CAP_VMM | GM_CAP_PEER | GM_CAP_SHARE |
                    GM_CAP_MANAGED | GM_CAP_REGISTRATION | GM_CAP_ADOPT | GM_CAP_ADDRESS,
    .probe = cuda_probe,
    .init = cuda_init,
    .fini = cuda_fini,
    .device_count = gm__cuda_device_count,
    .device_info = gm__cuda_device_info,
    .device_open = gm__cuda_device_open,
    .device_close = gm__cuda_device_close,
    .device_state = gm__cuda_device_state,
    .device_native = gm__cuda_device_native,
    .device_adopt = gm__cuda_device_adopt,
    .stream_adopt = gm__cuda_stream_adopt,
    .point_import = gm__cuda_point_import,
    .point_native = gm__cuda_point_native,
    .memory_wrap = gm__cuda_memory_wrap,
    .figures = gm__cuda_device_figures,
    .memory_type_count = gm__cuda_memory_type_count,
    .memory_type = gm__cuda_memory_type,
    .memory_alloc = gm__cuda_memory_alloc,
    .memory_free = gm__cuda_memory_free,
    .memory_native = gm__cuda_memory_native,
    .map = gm__cuda_map,
    .unmap = gm__pointer_unmap,
    .flush = gm__pointer_map_sync,
    .invalidate = gm__pointer_map_sync,
    .stream_create = gm__cuda_stream_create,
    .stream_close = gm__cuda_stream_close,
    .stream_flush = gm__cuda_stream_flush,
    .stream_sync = gm__cuda_stream_sync,
    .point_record = gm__cuda_point_record,
    .point_done = gm__cuda_point_done,
    .point_wait = gm__cuda_point_wait,
    .point_wait_on = gm__cuda_point_wait_on,
    .stream_barrier = gm__cuda_stream_barrier,
    .point_release = gm__cuda_point_release,
    .stream_same = gm__cuda_stream_same,
    .point_copy = gm__cuda_point_copy,
    .stream_capturing = gm__cuda_stream_capturing,
    .copy_to_device = gm__cuda_copy_to_device,
    .copy_to_host = gm__cuda_copy_to_host,
    .copy = gm__cuda_copy,
    .fill = gm__cuda_fill,
    .rect_to_device = gm__cuda_rect_to_device,
    .rect_to_host = gm__cuda_rect_to_host,
    .rect_copy = gm__cuda_rect_copy,
    .copy_many = gm__cuda_copy_many,
    .host_register = gm__cuda_host_register,
    .host_unregister = gm__cuda_host_unregister,
    .vmm_granularity = gm__cuda_vmm_granularity,
    .vmm_reserve = gm__cuda_vmm_reserve,
    .vmm_unreserve = gm__cuda_vmm_unreserve,
    .vmm_create = gm__cuda_vmm_create,
    .vmm_destroy = gm__cuda_vmm_destroy,
    .vmm_map = gm__cuda_vmm_map,
    .vmm_unmap = gm__cuda_vmm_unmap,
    .vmm_access = gm__cuda_vmm_access,
    .peer_info = gm__cuda_peer_info,
    .peer_enable = gm__cuda_peer_enable,
    .peer_disable = gm__cuda_peer_disable,
    .peer_access = gm__cuda_peer_access,
    .peer_copy = gm__cuda_peer_copy,
    .share_export = gm__cuda_share_export,
    .share_import = gm__cuda_share_import,
    .share_close = gm__cuda_share_close,
    .share_export_vmm = gm__cuda_share_export_vmm,
    .share_import_vmm = gm__cuda_share_import_vmm,
    .managed_prefetch = gm__cuda_managed_prefetch,
    .managed_advise = gm__cuda_managed_advise,
};
