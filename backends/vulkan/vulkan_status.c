#include "backends/vulkan/vulkan_status.h"

#include "core/base/error.h"

/* A device keeps apart what a caller must tell apart: memory of the device, of the host, too many objects, lost. */
#define STATUS_MAP(X)                                                     \
  X(VK_SUCCESS, GM_OK)                                                    \
  X(VK_NOT_READY, GM_ERR_TIMEOUT)                                         \
  X(VK_TIMEOUT, GM_ERR_TIMEOUT)                                           \
  X(VK_INCOMPLETE, GM_ERR_DRIVER)                                         \
  X(VK_ERROR_OUT_OF_HOST_MEMORY, GM_ERR_OUT_OF_HOST_MEMORY)               \
  X(VK_ERROR_OUT_OF_DEVICE_MEMORY, GM_ERR_OUT_OF_DEVICE_MEMORY)           \
  X(VK_ERROR_INITIALIZATION_FAILED, GM_ERR_UNAVAILABLE)                   \
  X(VK_ERROR_DEVICE_LOST, GM_ERR_DEVICE_LOST)                             \
  X(VK_ERROR_MEMORY_MAP_FAILED, GM_ERR_DRIVER)                            \
  X(VK_ERROR_LAYER_NOT_PRESENT, GM_ERR_UNAVAILABLE)                       \
  X(VK_ERROR_EXTENSION_NOT_PRESENT, GM_ERR_NOT_SUPPORTED)                 \
  X(VK_ERROR_FEATURE_NOT_PRESENT, GM_ERR_NOT_SUPPORTED)                   \
  X(VK_ERROR_INCOMPATIBLE_DRIVER, GM_ERR_UNAVAILABLE)                     \
  X(VK_ERROR_TOO_MANY_OBJECTS, GM_ERR_OUT_OF_DEVICE_MEMORY)               \
  X(VK_ERROR_FORMAT_NOT_SUPPORTED, GM_ERR_NOT_SUPPORTED)                  \
  X(VK_ERROR_FRAGMENTED_POOL, GM_ERR_OUT_OF_DEVICE_MEMORY)                \
  X(VK_ERROR_UNKNOWN, GM_ERR_DRIVER)                                      \
  X(VK_ERROR_OUT_OF_POOL_MEMORY, GM_ERR_OUT_OF_DEVICE_MEMORY)             \
  X(VK_ERROR_INVALID_EXTERNAL_HANDLE, GM_ERR_INVALID_ARGUMENT)            \
  X(VK_ERROR_FRAGMENTATION, GM_ERR_OUT_OF_DEVICE_MEMORY)                  \
  X(VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS, GM_ERR_OUT_OF_DEVICE_MEMORY) \
  X(VK_ERROR_VALIDATION_FAILED_EXT, GM_ERR_DRIVER)                        \
  X(VK_ERROR_NOT_PERMITTED_KHR, GM_ERR_NOT_SUPPORTED)

typedef struct status_row {
  VkResult result;
  gm_status status;
  const char *name;
} status_row;

static const status_row status_rows[] = {
#define X(result, status) {result, status, #result},
    STATUS_MAP(X)
#undef X
};

static const status_row *status_find(VkResult result) {
  for (size_t i = 0; i < sizeof status_rows / sizeof status_rows[0]; i++) {
    if (status_rows[i].result == result) return &status_rows[i];
  }
  static const status_row unknown = {VK_ERROR_UNKNOWN, GM_ERR_DRIVER, "VkResult ?"};
  return &unknown;
}

gm_status gm__vulkan_status(VkResult result) { return status_find(result)->status; }

const char *gm__vulkan_result_name(VkResult result) { return status_find(result)->name; }

gm_status gm__vulkan_fail(VkResult result, const char *op, gm_error *err) {
  const status_row *row = status_find(result);
  if (result == VK_SUCCESS) return gm__fail(err, GM_ERR_DRIVER, 0, op, "%s answered VK_SUCCESS and gave nothing", op);
  gm_status status = row->status == GM_OK ? GM_ERR_DRIVER : row->status;
  return gm__fail(err, status, (int32_t)result, op, "%s answered %s (%d)", op, row->name, (int)result);
}
