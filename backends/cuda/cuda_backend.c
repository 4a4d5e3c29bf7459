#include "backends/cuda/cuda_backend.h"

#include "backends/cuda/cuda_open.h"
#include "backends/cuda/cuda_runtime.h"
#include "backends/cuda/cuda_vmm.h"
#include "backends/shared/runtime/runtime_driver.h"
#include "backends/shared/runtime/runtime_entries.h"

static gm_status cuda_probe(const gm_backend_host *host, gm_probe_level level, gm_driver_info *out, gm_error *err) {
  return gm__runtime_probe(&gm__cuda_runtime, host, level, out, err);
}

static gm_status cuda_init(const gm_backend_host *host, void **out_driver, gm_error *err) {
  return gm__runtime_init(&gm__cuda_runtime, &gm__cuda_backend, host, out_driver, err);
}

const gm_backend_ops gm__cuda_backend = {
    .abi = GM_BACKEND_ABI,
    .struct_size = sizeof(gm_backend_ops),
    .name = "cuda",
    .api = GM_API_CUDA,
    .capabilities = GM_CAP_STREAMS | GM_CAP_POINTS | GM_CAP_MAPPING | GM_CAP_VMM | GM_CAP_PEER | GM_CAP_SHARE |
                    GM_CAP_MANAGED | GM_CAP_REGISTRATION | GM_CAP_ADOPT | GM_CAP_ADDRESS,
    .probe = cuda_probe,
    .init = cuda_init,
    .device_open = gm__cuda_device_open,
    .device_adopt = gm__cuda_device_adopt,
    .vmm_reserve = gm__cuda_vmm_reserve,
    .vmm_unreserve = gm__cuda_vmm_unreserve,
    .vmm_map = gm__cuda_vmm_map,
    .vmm_unmap = gm__cuda_vmm_unmap,
#define X(entry, function) .entry = function,
#include "backends/shared/runtime/runtime_entries.def"
#undef X
};
