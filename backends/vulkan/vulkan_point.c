#include "backends/vulkan/vulkan_point.h"

#include "backends/shared/native.h"
#include "backends/vulkan/vulkan_entries.h"
#include "core/base/error.h"
#include "core/base/sized.h"

typedef enum point_kind { POINT_PASSED, POINT_SEMAPHORE, POINT_COUNTED, POINT_FENCE } point_kind;

static point_kind point_kind_of(const gm__vulkan_device *device, const gm_backend_point *point) {
  if (!point->handle) return POINT_PASSED;
  if (!point->value) return POINT_FENCE;
  return gm__vulkan_has_timelines(device) ? POINT_SEMAPHORE : POINT_COUNTED;
}

static gm__vulkan_timeline *point_timeline(const gm_backend_point *point) {
  return (gm__vulkan_timeline *)(uintptr_t)point->handle;
}

static const char *point_ask_op(point_kind kind) {
  return kind == POINT_SEMAPHORE ? "vkGetSemaphoreCounterValue" : "vkGetFenceStatus";
}

static VkResult point_ask(gm__vulkan_device *device, point_kind kind, const gm_backend_point *point) {
  uint64_t value = UINT64_MAX;
  VkResult result = VK_SUCCESS;
  switch (kind) {
    case POINT_PASSED: break;
    case POINT_FENCE: return device->syms.vkGetFenceStatus(device->handle, (VkFence)point->handle);
    case POINT_COUNTED: return gm__vulkan_fences_done(device, &point_timeline(point)->fences, point->value);
    case POINT_SEMAPHORE:
      result = device->syms.vkGetSemaphoreCounterValue(device->handle, (VkSemaphore)point->handle, &value);
      break;
  }
  if (result) return result;
  return value >= point->value ? VK_SUCCESS : VK_NOT_READY;
}

gm_status gm__vulkan_point_done(void *user, const gm_backend_point *point, bool *out, gm_error *err) {
  gm__vulkan_device *device = user;
  const point_kind kind = point_kind_of(device, point);
  const VkResult result = point_ask(device, kind, point);
  if (result < 0) return gm__vulkan_device_fail(device, result, point_ask_op(kind), err);
  *out = result == VK_SUCCESS;
  return GM_OK;
}

static VkResult point_await(gm__vulkan_device *device, point_kind kind, const gm_backend_point *point,
                            uint64_t timeout_ns) {
  if (kind == POINT_COUNTED) {
    return gm__vulkan_fences_wait(device, &point_timeline(point)->fences, point->value, timeout_ns);
  }
  if (kind == POINT_FENCE) {
    const VkFence fence = (VkFence)point->handle;
    return device->syms.vkWaitForFences(device->handle, 1, &fence, VK_TRUE, timeout_ns);
  }
  VkSemaphore semaphore = (VkSemaphore)point->handle;
  const VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                    .semaphoreCount = 1,
                                    .pSemaphores = &semaphore,
                                    .pValues = &point->value};
  return device->syms.vkWaitSemaphores(device->handle, &info, timeout_ns);
}

gm_status gm__vulkan_point_wait(void *user, const gm_backend_point *point, uint64_t timeout_ns, gm_error *err) {
  gm__vulkan_device *device = user;
  const point_kind kind = point_kind_of(device, point);
  const char *op = kind == POINT_SEMAPHORE ? "vkWaitSemaphores" : "vkWaitForFences";
  if (kind == POINT_PASSED) return GM_OK;
  VkResult result = point_await(device, kind, point, timeout_ns);
  if (result != VK_SUCCESS && timeout_ns == UINT64_MAX) {
    /* The work still runs, in memory that the caller may free on this answer. So gm waits once more; that ends on a
     * lost device too. A time-out that nobody asked for is no failure when the second wait succeeds. */
    const VkResult again = point_await(device, kind, point, timeout_ns);
    if (result > 0) result = again;
  }
  if (result == VK_TIMEOUT)
    return gm__fail_native(err, GM_ERR_TIMEOUT, result, op, "the point was not reached in time");
  return result ? gm__vulkan_device_fail(device, result, op, err) : GM_OK;
}

gm_status gm__vulkan_point_ways(gm__vulkan_device *device, const gm_backend_point *point, VkQueue queue,
                                gm__vulkan_wait_by *out, gm_error *err) {
  const point_kind kind = point_kind_of(device, point);
  bool done = kind == POINT_PASSED;
  *out = GM__VULKAN_WAIT_SEMAPHORE;
  if (kind == POINT_SEMAPHORE) return GM_OK;
  gm_status status = done ? GM_OK : gm__vulkan_point_done(device, point, &done, err);
  const bool same = kind == POINT_COUNTED && point_timeline(point)->queue == queue;
  *out = done ? GM__VULKAN_WAIT_PASSED : same ? GM__VULKAN_WAIT_BARRIER : GM__VULKAN_WAIT_NOT;
  return status;
}

gm_status gm__vulkan_point_import(void *user, const gm_native_point *given, gm_backend_point *out, gm_error *err) {
  static const char op[] = "gm_backend_ops.point_import";
  const gm__vulkan_device *device = user;
  gm_vulkan_point native;
  const gm_status status = gm__native_in(&native, sizeof native, given, GM_API_VULKAN, op, "native", err);
  if (status) return status;
  if (!native.semaphore == !native.fence) {
    return gm__bad_argument(err, op, "`native`: semaphore and fence are %s: give one of them",
                            native.fence ? "both set" : "both 0");
  }
  if (native.fence) {
    *out = (gm_backend_point){native.fence, 0};
    return GM_OK;
  }
  if (!gm__vulkan_has_timelines(device)) {
    return gm__bad_argument(err, op,
                            "`native`: semaphore is set, and the device has no timeline semaphores "
                            "(GM_VULKAN_TIMELINE_SEMAPHORE): give a fence");
  }
  *out = native.value ? (gm_backend_point){native.semaphore, native.value} : (gm_backend_point){0, 0};
  return GM_OK;
}

gm_status gm__vulkan_point_native(void *user, const gm_backend_point *point, gm_native_point *given, gm_error *err) {
  static const char op[] = "gm_backend_ops.point_native";
  gm__vulkan_device *device = user;
  gm_vulkan_point told = {.head = *given};
  gm_status status = gm__native_check(given, sizeof told, GM_API_VULKAN, op, "out", err);
  bool done = false;
  if (status) return status;
  switch (point_kind_of(device, point)) {
    case POINT_PASSED: break;
    case POINT_FENCE: told.fence = point->handle; break;
    case POINT_SEMAPHORE: told.semaphore = point->handle, told.value = point->value; break;
    case POINT_COUNTED:
      status = gm__vulkan_point_done(device, point, &done, err);
      if (status) return status;
      if (done) break;
      return gm__fail(err, GM_ERR_NOT_SUPPORTED, op,
                      "without timeline semaphores a point of gm's is no object of Vulkan: gm uses its fences again");
  }
  gm__sized_out(given, &told, sizeof told);
  return GM_OK;
}
