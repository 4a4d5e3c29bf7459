#include "backends/vulkan/vulkan_sparse.h"

#include <inttypes.h>

#include "backends/vulkan/vulkan_device.h"
#include "backends/vulkan/vulkan_mem.h"
#include "backends/vulkan/vulkan_status.h"
#include "backends/vulkan/vulkan_stream.h"
#include "core/base/alloc.h"
#include "core/base/error.h"

/* Invariants: a range is one sparse buffer, of which an aligned part is given out; where buffers have no addresses the
 * range has one that stands for it and that nothing else has. A bind has been executed when the call returns. */

/* Far above where gm's core begins to invent addresses for memory without. */
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
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, op,
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

/* After it was submitted the bind happens, whatever a wait answers: a second one tells whether it has. */
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
  gm__mutex_lock(&device->sparse.call); /* a buffer may be bound on several queues, by one thread at a time */
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

/* On a queue of gm's own device. */
static gm_status sparse_bind_own(gm__vulkan_device *device, VkBuffer buffer, const VkSparseMemoryBind *bind,
                                 gm_error *err) {
  VkQueue handle = VK_NULL_HANDLE;
  device->syms.vkGetDeviceQueue(device->handle, device->physical.sparse_family, 0, &handle);
  if (!handle) return gm__fail(err, GM_ERR_DRIVER, 0, "vkGetDeviceQueue", "the driver gave no queue that binds");
  gm__vulkan_stream stream = {.device = device,
                              .queue = gm__vulkan_queue_get(device, handle, device->physical.sparse_family)};
  if (!stream.queue) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "vkQueueBindSparse", "no host memory for a queue");
  }
  gm_status status = sparse_submit(&stream, buffer, bind, err);
  gm__vulkan_queue_put(device, stream.queue);
  return status;
}

/* On a queue that the engine lent, which does not close meanwhile. */
static gm_status sparse_bind_lent(gm__vulkan_device *device, VkBuffer buffer, const VkSparseMemoryBind *bind,
                                  gm_error *err) {
  gm__vulkan_sparse *sparse = &device->sparse;
  gm__mutex_lock(&sparse->mutex);
  gm__vulkan_stream *stream = sparse->binders;
  if (stream) stream->binds++;
  gm__mutex_unlock(&sparse->mutex);
  if (!stream) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "vkQueueBindSparse",
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

gm__vulkan_range *gm__vulkan_range_find(const gm__vulkan_device *device, uint64_t address, uint64_t bytes) {
  gm__vulkan_range *range = device->sparse.ranges;
  for (; range; range = range->next) {
    const uint64_t at = address - range->address;
    if (address >= range->address && at <= range->bytes && bytes <= range->bytes - at) return range;
  }
  return NULL;
}

static gm_status range_check(gm__vulkan_device *device, uint64_t bytes, uint64_t align, uint64_t *out_whole,
                             gm_error *err) {
  static const char op[] = "gm_backend_ops.vmm_reserve";
  const uint64_t granule = device->sparse.granule, extra = align > granule ? align - granule : 0;
  const uint64_t space = device->physical.props.limits.sparseAddressSpaceSize;
  if (align & (align - 1)) return gm__bad_argument(err, op, "`align` must be a power of two, is %" PRIu64, align);
  const uint64_t whole = bytes > UINT64_MAX - extra ? UINT64_MAX : bytes + extra;
  const uint64_t left = space > device->sparse.reserved ? space - device->sparse.reserved : 0;
  if (whole > left || whole > device->physical.max_buffer_bytes) {
    return gm__fail(err, GM_ERR_OUT_OF_DEVICE_MEMORY, 0, op,
                    "%" PRIu64 " bytes of addresses asked; %" PRIu64
                    " are left (sparseAddressSpaceSize), and one "
                    "range may have %" PRIu64 " (maxBufferSize)",
                    whole, left, device->physical.max_buffer_bytes);
  }
  *out_whole = whole;
  return GM_OK;
}

/* Where the range begins: an address of the driver's is input. */
static gm_status range_place(gm__vulkan_device *device, gm__vulkan_range *range, uint64_t align, gm_error *err) {
  const uint64_t granule = device->sparse.granule, unit = align > granule ? align : granule;
  uint64_t base = 0;
  gm_status status = gm__vulkan_buffer_address(device, range->buffer, &base, err);
  if (status) return status;
  if (!device->address) base = device->sparse.next + (granule - device->sparse.next % granule) % granule;
  if (base % granule || base > UINT64_MAX - range->buffer_bytes) {
    return gm__fail(err, GM_ERR_DRIVER, 0, "vkGetBufferDeviceAddress",
                    "the driver placed a sparse buffer of %" PRIu64 " bytes at %" PRIu64 ", granularity %" PRIu64,
                    range->buffer_bytes, base, granule);
  }
  if (!device->address) device->sparse.next = base + range->buffer_bytes;
  range->buffer_at = (unit - base % unit) % unit;
  range->address = base + range->buffer_at;
  return GM_OK;
}

static void range_release(gm__vulkan_device *device, gm__vulkan_range *range, gm_close_mode mode) {
  if (mode == GM_CLOSE_NORMAL && range->buffer) {
    device->syms.vkDestroyBuffer(device->handle, range->buffer, NULL);
  }
  gm__release(device->services, range->mappings, range->capacity * sizeof *range->mappings);
  gm__release(device->services, range, sizeof *range);
}

/* Under the mutex. */
static gm_status range_make(gm__vulkan_device *device, uint64_t bytes, uint64_t align, gm__vulkan_range **out,
                            gm_error *err) {
  gm__vulkan_buffer_params params = {.sparse = true};
  gm_status status = range_check(device, bytes, align, &params.bytes, err);
  if (status) return status;
  gm__vulkan_range *range = gm__alloc(device->services, sizeof *range);
  if (!range) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_backend_ops.vmm_reserve", "no host memory for the record");
  }
  range->buffer_bytes = params.bytes;
  range->bytes = bytes;
  status = gm__vulkan_buffer_create(device, &params, &range->buffer, err);
  if (!status) status = range_place(device, range, align, err);
  if (status) {
    range_release(device, range, GM_CLOSE_NORMAL);
    return status;
  }
  device->sparse.reserved += range->buffer_bytes;
  range->next = device->sparse.ranges;
  device->sparse.ranges = range;
  *out = range;
  return GM_OK;
}

gm_status gm__vulkan_vmm_reserve(void *user, uint64_t bytes, uint64_t align, uint64_t *out_address, gm_error *err) {
  gm__vulkan_device *device = user;
  gm__vulkan_range *range = NULL;
  gm_status status = gm__vulkan_sparse_check_bytes(device, bytes, "gm_backend_ops.vmm_reserve", err);
  if (!status) status = gm__vulkan_device_state(device, err);
  if (status) return status;
  gm__mutex_lock(&device->sparse.mutex);
  status = range_make(device, bytes, align, &range, err);
  if (!status) *out_address = range->address;
  gm__mutex_unlock(&device->sparse.mutex);
  return status;
}

/* Under the mutex, unless abandoned. */
static gm_status range_unmake(gm__vulkan_device *device, uint64_t address, uint64_t bytes, gm_close_mode mode,
                              gm_error *err) {
  static const char op[] = "gm_backend_ops.vmm_unreserve";
  gm__vulkan_range **at = &device->sparse.ranges;
  while (*at && ((*at)->address != address || (*at)->bytes != bytes)) at = &(*at)->next;
  gm__vulkan_range *range = *at;
  if (!range) return gm__bad_argument(err, op, "`address` and `bytes` are no reserved range");
  if (range->count && mode == GM_CLOSE_NORMAL) {
    return gm__fail(err, GM_ERR_BUSY, 0, op, "something is still mapped in the range");
  }
  for (uint64_t i = 0; i < range->count; i++) gm__vulkan_piece_drop(device, range->mappings[i].piece, mode);
  *at = range->next;
  device->sparse.reserved -= range->buffer_bytes;
  range_release(device, range, mode);
  return GM_OK;
}

gm_status gm__vulkan_vmm_unreserve(void *user, uint64_t address, uint64_t bytes, gm_close_mode mode, gm_error *err) {
  gm__vulkan_device *device = user;
  if (mode == GM_CLOSE_ABANDON) return range_unmake(device, address, bytes, mode, err);
  gm__mutex_lock(&device->sparse.mutex);
  gm_status status = range_unmake(device, address, bytes, mode, err);
  gm__mutex_unlock(&device->sparse.mutex);
  return status;
}
