/* The table of the null backend. Left out on purpose: mapping and commit (there is no memory), adoption and views
 * (there is nothing native), host registration. Reading back answers GM_ERR_NOT_SUPPORTED: contents are not kept. */
#include "backends/null/null_backend.h"

#include "backends/null/null_copy.h"
#include "backends/null/null_device.h"
#include "backends/null/null_mem.h"
#include "backends/null/null_stream.h"
#include "backends/null/null_vmm.h"

const gm_backend_ops gm__null_backend = {
    .abi = GM_BACKEND_ABI,
    .struct_size = sizeof(gm_backend_ops),
    .name = "null",
    .api = GM_API_NULL,
    .capabilities = GM__NULL_CAPABILITIES,
    .probe = gm__null_probe,
    .init = gm__null_init,
    .fini = gm__null_fini,
    .device_count = gm__null_device_count,
    .device_info = gm__null_device_info,
    .device_open = gm__null_device_open,
    .device_close = gm__null_device_close,
    .device_state = gm__null_device_state,
    .device_native = gm__null_device_native,
    .figures = gm__null_figures,
    .memory_type_count = gm__null_memory_type_count,
    .memory_type = gm__null_memory_type,
    .memory_alloc = gm__null_memory_alloc,
    .memory_free = gm__null_memory_free,
    .memory_native = gm__null_memory_native,
    .stream_create = gm__null_stream_create,
    .stream_close = gm__null_stream_close,
    .stream_flush = gm__null_stream_flush,
    .stream_sync = gm__null_stream_sync,
    .point_record = gm__null_point_record,
    .point_done = gm__null_point_done,
    .point_wait = gm__null_point_wait,
    .point_wait_on = gm__null_point_wait_on,
    .stream_barrier = gm__null_stream_flush,
    .point_release = gm__null_point_release,
    .point_copy = gm__null_point_copy,
    .copy_to_device = gm__null_copy_to_device,
    .copy_to_host = gm__null_copy_to_host,
    .copy = gm__null_copy,
    .fill = gm__null_fill,
    .copy_many = gm__null_copy_many,
    .vmm_granularity = gm__null_vmm_granularity,
    .vmm_reserve = gm__null_vmm_reserve,
    .vmm_unreserve = gm__null_vmm_unreserve,
    .vmm_create = gm__null_vmm_create,
    .vmm_destroy = gm__null_vmm_destroy,
    .vmm_map = gm__null_vmm_map,
    .vmm_unmap = gm__null_vmm_unmap,
    .vmm_access = gm__null_vmm_access,
};
