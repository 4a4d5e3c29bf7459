#include "template_backend.h"

#include "template_device.h"
#include "template_mem.h"
#include "template_stream.h"

static const gm_backend_ops backend_ops = {
    .abi = GM_BACKEND_ABI,
    .struct_size = sizeof(gm_backend_ops),
    .name = "template",
    .api = GM_API_OTHER,
    .capabilities = TEMPLATE_CAPABILITIES,
    .probe = template_probe,
    .init = template_init,
    .fini = template_fini,
    .device_count = template_device_count,
    .device_info = template_device_info,
    .device_open = template_device_open,
    .device_close = template_device_close,
    .device_state = template_device_state,
    .device_native = template_device_native,
    .figures = template_figures,
    .memory_type_count = template_memory_type_count,
    .memory_type = template_memory_type,
    .memory_alloc = template_memory_alloc,
    .memory_free = template_memory_free,
    .memory_native = template_memory_native,
    .stream_create = template_stream_create,
    .stream_close = template_stream_close,
    .stream_flush = template_stream_done,
    .stream_sync = template_stream_done,
    .stream_barrier = template_stream_done,
    .point_record = template_point_record,
    .point_done = template_point_done,
    .point_wait = template_point_wait,
    .point_wait_on = template_point_wait_on,
    .point_release = template_point_release,
    .copy_to_device = template_copy_to_device,
    .copy_to_host = template_copy_to_host,
    .copy = template_copy,
    .fill = template_fill,
};

const gm_backend_ops *template_backend(void) { return &backend_ops; }

const gm_backend_ops *gm_backend_module(void) { return &backend_ops; }
