#include "backends/null/null_backend.h"

#include "backends/null/null_device.h"
#include "backends/null/null_entries.h"

const gm_backend_ops gm__null_backend = {
    .abi = GM_BACKEND_ABI,
    .struct_size = sizeof(gm_backend_ops),
    .name = "null",
    .api = GM_API_NULL,
    .capabilities = GM__NULL_CAPABILITIES,
#define X(entry, function) .entry = function,
#include "backends/null/null_entries.def"
#undef X
};
