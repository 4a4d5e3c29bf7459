/* The table of the CPU backend. Left out on purpose: adoption and views (a block is a pointer, there is nothing to
 * lend) and copy_record (there is no command buffer). */
#include "backends/cpu/cpu_backend.h"

#include "backends/cpu/cpu_copy.h"
#include "backends/cpu/cpu_device.h"
#include "backends/cpu/cpu_mem.h"
#include "backends/cpu/cpu_pinned.h"
#include "backends/cpu/cpu_share.h"
#include "backends/cpu/cpu_stream.h"
#include "backends/cpu/cpu_vmm.h"

const gm_backend_ops gm__cpu_backend = {
    .abi = GM_BACKEND_ABI,
    .struct_size = sizeof(gm_backend_ops),
    .name = "cpu",
    .api = GM_API_CPU,
    .capabilities = GM__CPU_CAPABILITIES,
    .probe = gm__cpu_probe,
    .init = gm__cpu_init,
    .fini = gm__cpu_fini,
    .device_count = gm__cpu_device_count,
    .device_info = gm__cpu_device_info,
    .device_open = gm__cpu_device_open,
    .device_close = gm__cpu_device_close,
    .device_state = gm__cpu_device_state,
    .device_native = gm__cpu_device_native,
    .figures = gm__cpu_figures,
    .memory_type_count = gm__cpu_memory_type_count,
    .memory_type = gm__cpu_memory_type,
    .memory_alloc = gm__cpu_memory_alloc,
    .memory_wrap = gm__cpu_memory_wrap,
    .memory_free = gm__cpu_memory_free,
    .memory_native = gm__cpu_memory_native,
    .map = gm__cpu_map,
    .unmap = gm__cpu_unmap,
    .flush = gm__cpu_flush,
    .invalidate = gm__cpu_flush,
    .commit = gm__cpu_commit,
    .stream_create = gm__cpu_stream_create,
    .stream_close = gm__cpu_stream_close,
    .stream_flush = gm__cpu_stream_flush,
    .stream_sync = gm__cpu_stream_sync,
    .point_record = gm__cpu_point_record,
    .point_done = gm__cpu_point_done,
    .point_wait = gm__cpu_point_wait,
    .point_wait_on = gm__cpu_point_wait_on,
    .stream_barrier = gm__cpu_stream_flush,
    .point_release = gm__cpu_point_release,
    .copy_to_device = gm__cpu_copy_to_device,
    .copy_to_host = gm__cpu_copy_to_host,
    .copy = gm__cpu_copy,
    .fill = gm__cpu_fill,
    .rect_to_device = gm__cpu_rect_to_device,
    .rect_to_host = gm__cpu_rect_to_host,
    .rect_copy = gm__cpu_rect_copy,
    .copy_many = gm__cpu_copy_many,
    .host_register = gm__cpu_host_register,
    .host_unregister = gm__cpu_host_unregister,
    .vmm_granularity = gm__cpu_vmm_granularity,
    .vmm_reserve = gm__cpu_vmm_reserve,
    .vmm_unreserve = gm__cpu_vmm_unreserve,
    .vmm_create = gm__cpu_vmm_create,
    .vmm_destroy = gm__cpu_vmm_destroy,
    .vmm_map = gm__cpu_vmm_map,
    .vmm_unmap = gm__cpu_vmm_unmap,
    .vmm_access = gm__cpu_vmm_access,
    .vmm_memory = gm__cpu_vmm_memory,
    .share_export = gm__cpu_share_export,
    .share_import = gm__cpu_share_import,
    .share_close = gm__cpu_share_close,
    .share_export_vmm = gm__cpu_share_export_vmm,
    .share_import_vmm = gm__cpu_share_import_vmm,
};
