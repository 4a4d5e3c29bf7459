#include "backends/vulkan/vulkan_backend.h"

#include "backends/vulkan/vulkan_device.h"
#include "backends/vulkan/vulkan_entries.h"

const gm_backend_ops gm__vulkan_backend = {
    .abi = GM_BACKEND_ABI,
    .struct_size = sizeof(gm_backend_ops),
    .name = "vulkan",
    .api = GM_API_VULKAN,
    .capabilities = VULKAN_CAPABILITIES,
#define X(entry, function) .entry = function,
#include "backends/vulkan/vulkan_entries.def"
#undef X
};
