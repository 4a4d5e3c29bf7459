#include "backends/vulkan/vulkan_sparse.h"

#include <inttypes.h>

#include "backends/vulkan/vulkan_entries.h"
#include "backends/vulkan/vulkan_queue.h"
#include "core/base/error.h"

/* Invariant: the driver has executed a bind when the call returns. */

/* gm's core invents addresses for memory without, too. These are far above them. */
#define SPARSE_FIRST_ADDRESS (UINT64_C(1) << 56)

void gm__vulkan_sparse_init(gm__vulkan_sparse *sparse) {
  gm__mutex_init(&sparse->mutex, GM__RANK_STAGING);
  gm__mutex_init(&sparse->call, GM__RANK_STREAM);
  gm__cond_init(&sparse->changed);
  sparse->next = SPARSE_FIRST_ADDRESS;
}

void gm__vulkan_sparse_destroy(gm__vulkan_sparse *sparse) {
  gm__cond_destroy(&sparse->changed);
  gm__mutex_destroy(&sparse->call);
  gm__mutex_destroy(&sparse->mutex);
}

void gm__vulkan_sparse_ask(gm__vulkan_device *device) {
  const gm__vulkan_buffer_params params = {.bytes = 65536, .sparse = true};
  gm__vulkan_needs needs;
  if (!(device->features & GM_VULKAN_SPARSE_BUFFERS) || !device->physical.sparse) return;
  if (gm__vulkan_buffer_ask(device, &params, &needs, NULL)) return;
  const bool power = needs.alignment && !(needs.alignment & (needs.alignment - 1));
  if (!power || !(needs.type_bits >> device->types[0].index & 1)) return;
  device->sparse.granule = needs.alignment;
  device->sparse.type_bits = needs.type_bits;
}

gm_status gm__vulkan_sparse_check(const gm__vulkan_device *device, const char *op, gm_error *err) {
  if (device->sparse.granule) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, op,
                  "%.100s has no sparse buffers that can be bound in parts (sparseBinding, sparseResidencyBuffer, a "
                  "queue family that binds), or they were not enabled",
                  device->physical.props.deviceName);
}

gm_status gm__vulkan_sparse_check_bytes(const gm__vulkan_device *device, uint64_t bytes, const char *op,
                                        gm_error *err) {
  gm_status status = gm__vulkan_sparse_check(device, op, err);
  if (status || (bytes && bytes % device->sparse.granule == 0)) return status;
  return gm__bad_argument(err, op, "%" PRIu64 " bytes: must be a multiple of the granularity, %" PRIu64, bytes,
                          device->sparse.granule);
}

void gm__vulkan_sparse_offer(gm__vulkan_stream *stream) {
  gm__vulkan_device *device = stream->device;
  if (!device->adopted || !stream->timeline || !(device->physical.sparse_families >> stream->queue->family & 1)) return;
  gm__mutex_lock(&device->sparse.mutex);
  stream->next_binder = device->sparse.binders;
  device->sparse.binders = stream;
  gm__mutex_unlock(&device->sparse.mutex);
}

void gm__vulkan_sparse_withdraw(gm__vulkan_stream *stream) {
  gm__vulkan_sparse *sparse = &stream->device->sparse;
  gm__mutex_lock(&sparse->mutex);
  gm__vulkan_stream **at = &sparse->binders;
  while (*at && *at != stream) at = &(*at)->next_binder;
  if (*at) *at = stream->next_binder;
  while (stream->binds) gm__cond_wait(&sparse->changed, &sparse->mutex);
  gm__mutex_unlock(&sparse->mutex);
}

/* A submitted bind happens, whatever a wait answers. A second wait tells whether it has happened. */
static VkResult sparse_wait(gm__vulkan_device *device, VkFence fence) {
  VkResult result = device->syms.vkWaitForFences(device->handle, 1, &fence, VK_TRUE, UINT64_MAX);
  if (result < 0) result = device->syms.vkWaitForFences(device->handle, 1, &fence, VK_TRUE, UINT64_MAX);
  return result;
}

static gm_status sparse_submit(gm__vulkan_stream *stream, VkBuffer buffer, const VkSparseMemoryBind *bind,
                               gm_error *err) {
  gm__vulkan_device *device = stream->device;
  const VkSparseBufferMemoryBindInfo binds = {.buffer = buffer, .bindCount = 1, .pBinds = bind};
  const VkBindSparseInfo info = {
      .sType = VK_STRUCTURE_TYPE_BIND_SPARSE_INFO, .bufferBindCount = 1, .pBufferBinds = &binds};
  const VkFenceCreateInfo plain = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  VkFence fence = VK_NULL_HANDLE;
  VkResult result = device->syms.vkCreateFence(device->handle, &plain, NULL, &fence);
  if (result || !fence) return gm__vulkan_device_fail(device, result, "vkCreateFence", err);
  const char *op = "vkQueueBindSparse";
  gm__vulkan_stream_lock(stream);
  gm__mutex_lock(&device->sparse.call); /* several queues may bind one buffer, but only one thread at a time */
  result = device->syms.vkQueueBindSparse(stream->queue->handle, 1, &info, fence);
  gm__mutex_unlock(&device->sparse.call);
  gm__vulkan_stream_unlock(stream);
  if (!result) {
    op = "vkWaitForFences";
    result = sparse_wait(device, fence);
  }
  device->syms.vkDestroyFence(device->handle, fence, NULL);
  return result ? gm__vulkan_device_fail(device, result, op, err) : GM_OK;
}

/* Bind on a queue of gm's own device. */
static gm_status sparse_bind_own(gm__vulkan_device *device, VkBuffer buffer, const VkSparseMemoryBind *bind,
                                 gm_error *err) {
  VkQueue handle;
  gm_status status = gm__vulkan_queue_handle(device, device->physical.sparse_family, &handle, err);
  if (status) return status;
  gm__vulkan_stream stream = {.device = device,
                              .queue = gm__vulkan_queue_get(device, handle, device->physical.sparse_family)};
  if (!stream.queue) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "vkQueueBindSparse", "no host memory for a queue");
  }
  status = sparse_submit(&stream, buffer, bind, err);
  gm__vulkan_queue_put(device, stream.queue);
  return status;
}

/* Bind on a queue that the engine lent. The stream cannot close meanwhile. */
static gm_status sparse_bind_lent(gm__vulkan_device *device, VkBuffer buffer, const VkSparseMemoryBind *bind,
                                  gm_error *err) {
  gm__vulkan_sparse *sparse = &device->sparse;
  gm__mutex_lock(&sparse->mutex);
  gm__vulkan_stream *stream = sparse->binders;
  if (stream) stream->binds++;
  gm__mutex_unlock(&sparse->mutex);
  if (!stream) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "vkQueueBindSparse",
                    "no adopted queue of the device both may be submitted to and binds sparse memory");
  }
  gm_status status = sparse_submit(stream, buffer, bind, err);
  gm__mutex_lock(&sparse->mutex);
  stream->binds--;
  gm__cond_broadcast(&sparse->changed);
  gm__mutex_unlock(&sparse->mutex);
  return status;
}

gm_status gm__vulkan_sparse_bind(gm__vulkan_device *device, VkBuffer buffer, const VkSparseMemoryBind *bind,
                                 gm_error *err) {
  gm_status status = gm__vulkan_device_state(device, err);
  if (status) return status;
  return device->adopted ? sparse_bind_lent(device, buffer, bind, err) : sparse_bind_own(device, buffer, bind, err);
}
