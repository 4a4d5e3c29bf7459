#include "backends/opencl/opencl_status.h"

#include "backends/shared/code_table.h"

/* The table has numbers, because drivers return numbers of extensions whose names this build may not have. Drivers
 * answer CL_OUT_OF_RESOURCES when they cannot back memory that they have promised. NVIDIA also uses it for a dead
 * context: opencl_device.c tells these apart by the call. An unlisted number is GM_ERR_DRIVER. */
static const gm__code opencl_codes[] = {
    {0, GM_OK, "CL_SUCCESS"},
    {-1, GM_ERR_UNAVAILABLE, "CL_DEVICE_NOT_FOUND"},
    {-2, GM_ERR_DEVICE_LOST, "CL_DEVICE_NOT_AVAILABLE"},
    {-4, GM_ERR_OUT_OF_DEVICE_MEMORY, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {-5, GM_ERR_OUT_OF_DEVICE_MEMORY, "CL_OUT_OF_RESOURCES"},
    {-6, GM_ERR_OUT_OF_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY"},
    {-8, GM_ERR_DRIVER, "CL_MEM_COPY_OVERLAP"},
    {-12, GM_ERR_DRIVER, "CL_MAP_FAILURE"},
    {-13, GM_ERR_INVALID_ARGUMENT, "CL_MISALIGNED_SUB_BUFFER_OFFSET"},
    {-14, GM_ERR_DRIVER, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    {-30, GM_ERR_DRIVER, "CL_INVALID_VALUE"},
    {-31, GM_ERR_DRIVER, "CL_INVALID_DEVICE_TYPE"},
    {-32, GM_ERR_DRIVER, "CL_INVALID_PLATFORM"},
    {-33, GM_ERR_DRIVER, "CL_INVALID_DEVICE"},
    {-34, GM_ERR_DRIVER, "CL_INVALID_CONTEXT"},
    {-35, GM_ERR_DRIVER, "CL_INVALID_QUEUE_PROPERTIES"},
    {-36, GM_ERR_DRIVER, "CL_INVALID_COMMAND_QUEUE"},
    {-37, GM_ERR_DRIVER, "CL_INVALID_HOST_PTR"},
    {-38, GM_ERR_DRIVER, "CL_INVALID_MEM_OBJECT"},
    {-57, GM_ERR_DRIVER, "CL_INVALID_EVENT_WAIT_LIST"},
    {-58, GM_ERR_DRIVER, "CL_INVALID_EVENT"},
    {-59, GM_ERR_NOT_SUPPORTED, "CL_INVALID_OPERATION"},
    {-61, GM_ERR_ALLOCATION_TOO_LARGE, "CL_INVALID_BUFFER_SIZE"},
    {-64, GM_ERR_DRIVER, "CL_INVALID_PROPERTY"},
    {GM__OPENCL_NO_PLATFORM, GM_ERR_UNAVAILABLE, "CL_PLATFORM_NOT_FOUND_KHR"},
    {GM__OPENCL_NVIDIA_FAULT, GM_ERR_DEVICE_LOST, "NVIDIA_ILLEGAL_ACCESS"},
};

static const gm__code_table opencl_table = {"OpenCL", opencl_codes, sizeof opencl_codes / sizeof opencl_codes[0]};

gm_status gm__opencl_status(cl_int code) { return gm__code_find(&opencl_table, code)->status; }

const char *gm__opencl_code_name(cl_int code) { return gm__code_find(&opencl_table, code)->name; }

gm_status gm__opencl_fail(gm_error *err, cl_int code, const char *op) {
  return gm__code_fail(&opencl_table, err, code, op);
}
