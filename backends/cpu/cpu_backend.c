#include "backends/cpu/cpu_backend.h"

#include "backends/cpu/cpu_device.h"
#include "backends/cpu/cpu_entries.h"

const gm_backend_ops gm__cpu_backend = {
    .abi = GM_BACKEND_ABI,
    .struct_size = sizeof(gm_backend_ops),
    .name = "cpu",
    .api = GM_API_CPU,
    .capabilities = GM__CPU_CAPABILITIES,
#define X(entry, function) .entry = function,
#include "backends/cpu/cpu_entries.def"
#undef X
};
