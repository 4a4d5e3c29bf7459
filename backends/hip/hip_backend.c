#include "backends/hip/hip_backend.h"

#include "backends/hip/hip_open.h"
#include "backends/hip/hip_runtime.h"
#include "backends/hip/hip_vmm.h"
#include "backends/shared/runtime/runtime_driver.h"
#include "backends/shared/runtime/runtime_entries.h"

static gm_status hip_probe(const gm_backend_host *host, gm_probe_level level, gm_driver_info *out, gm_error *err) {
  return gm__runtime_probe(&gm__hip_runtime, host, level, out, err);
}

static gm_status hip_init(const gm_backend_host *host, void **out_driver, gm_error *err) {
  return gm__runtime_init(&gm__hip_runtime, &gm__hip_backend, host, out_driver, err);
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
    .device_open = gm__hip_device_open,
    .device_adopt = gm__hip_device_adopt,
    .vmm_reserve = gm__hip_vmm_reserve,
    .vmm_unreserve = gm__hip_vmm_unreserve,
    .vmm_map = gm__hip_vmm_map,
    .vmm_unmap = gm__hip_vmm_unmap,
#define X(entry, function) .entry = function,
#include "backends/shared/runtime/runtime_entries.def"
#undef X
};
