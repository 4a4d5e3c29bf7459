#include "backends/vulkan/vulkan_fence.h"

#include "core/base/alloc.h"
#include "core/base/error.h"

/* Invariants: a fence is in one list, or in the hands of a submission. A fence in the list of the submitted ones is
 * taken out when it is signalled. It becomes idle when nobody waits for it either. A queue signals its fences in the
 * order of submission, so a signalled fence says that all lower values are reached. */

struct gm__vulkan_fence {
  gm__vulkan_fence *next;
  VkFence handle;
  uint64_t value;   /* of the submission */
  uint32_t waiters; /* threads that wait for it outside the lock */
  bool used;        /* it was signalled, and must be reset */
  bool out;         /* of the list of the submitted ones */
};

void gm__vulkan_fences_init(gm__vulkan_fences *fences) { gm__mutex_init(&fences->mutex, GM__RANK_LEAF); }

static gm_status fence_create(gm__vulkan_device *device, gm__vulkan_fence **out, gm_error *err) {
  gm__vulkan_fence *fence = gm__alloc(device->services, sizeof *fence);
  if (!fence) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "vkCreateFence", "no host memory for a fence");
  const VkFenceCreateInfo plain = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  const VkResult result = device->syms.vkCreateFence(device->handle, &plain, NULL, &fence->handle);
  if (result || !fence->handle) {
    gm__release(device->services, fence, sizeof *fence);
    return gm__vulkan_device_fail(device, result, "vkCreateFence", err);
  }
  *out = fence;
  return GM_OK;
}

/* REQUIRES: lock. */
static void fence_rest(gm__vulkan_fences *fences, gm__vulkan_fence *fence) {
  fence->next = fences->idle;
  fences->idle = fence;
}

/* REQUIRES: lock. */
static void fences_pop(gm__vulkan_fences *fences) {
  gm__vulkan_fence *fence = fences->oldest;
  fences->oldest = fence->next;
  if (!fences->oldest) fences->newest = NULL;
  fence->used = fence->out = true;
  if (fences->reached < fence->value) fences->reached = fence->value;
  if (!fence->waiters) fence_rest(fences, fence);
}

/* Take out what is signalled, oldest first. REQUIRES: lock. */
static VkResult fences_advance(gm__vulkan_device *device, gm__vulkan_fences *fences) {
  VkResult result = VK_SUCCESS;
  while (fences->oldest) {
    result = device->syms.vkGetFenceStatus(device->handle, fences->oldest->handle);
    if (result) break;
    fences_pop(fences);
  }
  return result < 0 ? result : VK_SUCCESS;
}

/* An idle fence that still counts as used: its reset may fail, and another thread may then try again. */
static gm__vulkan_fence *fence_pop_idle(gm__vulkan_device *device, gm__vulkan_fences *fences) {
  gm__mutex_lock(&fences->mutex);
  if (!fences->idle) fences_advance(device, fences); /* a failure leaves a new fence to be made */
  gm__vulkan_fence *fence = fences->idle;
  if (fence) fences->idle = fence->next;
  gm__mutex_unlock(&fences->mutex);
  return fence;
}

gm_status gm__vulkan_fence_take(gm__vulkan_device *device, gm__vulkan_fences *fences, gm__vulkan_fence **out,
                                gm_error *err) {
  gm__vulkan_fence *fence = fence_pop_idle(device, fences);
  if (!fence) return fence_create(device, out, err);
  const VkResult result = fence->used ? device->syms.vkResetFences(device->handle, 1, &fence->handle) : VK_SUCCESS;
  if (result) {
    gm__vulkan_fence_drop(fences, fence);
    return gm__vulkan_device_fail(device, result, "vkResetFences", err);
  }
  fence->used = false;
  *out = fence;
  return GM_OK;
}

VkFence gm__vulkan_fence_handle(const gm__vulkan_fence *fence) { return fence->handle; }

void gm__vulkan_fence_sent(gm__vulkan_fences *fences, gm__vulkan_fence *fence, uint64_t value) {
  gm__mutex_lock(&fences->mutex);
  fence->value = value;
  fence->out = false;
  fence->next = NULL;
  if (fences->newest) {
    fences->newest->next = fence;
  } else {
    fences->oldest = fence;
  }
  fences->newest = fence;
  gm__mutex_unlock(&fences->mutex);
}

void gm__vulkan_fence_drop(gm__vulkan_fences *fences, gm__vulkan_fence *fence) {
  gm__mutex_lock(&fences->mutex);
  fence_rest(fences, fence);
  gm__mutex_unlock(&fences->mutex);
}

VkResult gm__vulkan_fences_done(gm__vulkan_device *device, gm__vulkan_fences *fences, uint64_t value) {
  gm__mutex_lock(&fences->mutex);
  VkResult result = fences->reached < value ? fences_advance(device, fences) : VK_SUCCESS;
  if (!result && fences->reached < value) result = VK_NOT_READY;
  gm__mutex_unlock(&fences->mutex);
  return result;
}

/* The first fence that tells of the value; NULL: it is reached. */
static gm__vulkan_fence *fence_pin(gm__vulkan_fences *fences, uint64_t value) {
  gm__mutex_lock(&fences->mutex);
  gm__vulkan_fence *fence = fences->reached < value ? fences->oldest : NULL;
  while (fence && fence->value < value) fence = fence->next;
  if (fence) fence->waiters++;
  gm__mutex_unlock(&fences->mutex);
  return fence;
}

static void fence_unpin(gm__vulkan_fences *fences, gm__vulkan_fence *fence, bool reached) {
  gm__mutex_lock(&fences->mutex);
  if (reached && fences->reached < fence->value) fences->reached = fence->value;
  if (--fence->waiters == 0 && fence->out) fence_rest(fences, fence);
  gm__mutex_unlock(&fences->mutex);
}

VkResult gm__vulkan_fences_wait(gm__vulkan_device *device, gm__vulkan_fences *fences, uint64_t value,
                                uint64_t timeout_ns) {
  gm__vulkan_fence *fence = fence_pin(fences, value);
  if (!fence) return VK_SUCCESS;
  const VkResult result = device->syms.vkWaitForFences(device->handle, 1, &fence->handle, VK_TRUE, timeout_ns);
  fence_unpin(fences, fence, result == VK_SUCCESS);
  return result;
}

static void fences_destroy(gm__vulkan_device *device, const gm__vulkan_fence *first) {
  for (const gm__vulkan_fence *fence = first; fence; fence = fence->next) {
    device->syms.vkDestroyFence(device->handle, fence->handle, NULL);
  }
}

void gm__vulkan_fences_clear(gm__vulkan_device *device, gm__vulkan_fences *fences) {
  fences_destroy(device, fences->oldest);
  fences_destroy(device, fences->idle);
}

static void fences_release(const gm__vulkan_device *device, gm__vulkan_fence *first) {
  for (gm__vulkan_fence *fence = first, *next; fence; fence = next) {
    next = fence->next;
    gm__release(device->services, fence, sizeof *fence);
  }
}

void gm__vulkan_fences_forget(const gm__vulkan_device *device, gm__vulkan_fences *fences) {
  fences_release(device, fences->oldest);
  fences_release(device, fences->idle);
}
