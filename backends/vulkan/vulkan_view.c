/* Views: a VkBuffer of its own for a range of gm's memory. */
#include <inttypes.h>

#include "backends/vulkan/vulkan_entries.h"
#include "backends/vulkan/vulkan_mem.h"
#include "core/base/error.h"

static const char view_op[] = "gm_backend_ops.view_create";

static gm_status view_check(gm__vulkan_device *device, const gm__vulkan_memory *memory, VkBuffer view, uint64_t offset,
                            gm_error *err) {
  const gm__vulkan_needs needs = gm__vulkan_buffer_needs(device, view);
  uint64_t alignment = needs.alignment, bytes = needs.bytes;
  uint64_t at = memory->memory_at + offset;
  if (alignment && at % alignment) {
    return gm__bad_argument(err, view_op,
                            "`offset` lies at byte %" PRIu64
                            " of its VkDeviceMemory; the driver asks for "
                            "a multiple of %" PRIu64,
                            at, alignment);
  }
  if (memory->wrapped || (bytes <= memory->allocated && at <= memory->allocated - bytes)) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, view_op,
                  "the driver wants %" PRIu64 " bytes behind the view, which end past the allocation", bytes);
}

gm_status gm__vulkan_view_create(void *user, const gm_memory *described, uint64_t offset, uint64_t bytes,
                                 uint32_t usage, uint64_t *out_view, gm_error *err) {
  (void)usage; /* gm's buffers have every usage */
  gm__vulkan_device *device = user;
  const gm__vulkan_memory *memory = gm__vulkan_memory_of(described);
  if (memory->dedicated) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, view_op,
                    "a dedicated allocation belongs to one buffer: use that buffer with an offset");
  }
  if (memory->range) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, view_op,
                    "a reserved range has no one VkDeviceMemory behind it: use its buffer with an offset");
  }
  const gm__vulkan_buffer_params params = {
      .bytes = bytes, .share = memory->share, .host = memory->host, .no_address = !memory->address};
  VkBuffer view;
  gm_status status = gm__vulkan_buffer_create(device, &params, &view, err);
  if (status) return status;
  status = view_check(device, memory, view, offset, err);
  if (!status) {
    VkResult result = device->syms.vkBindBufferMemory(device->handle, view, memory->memory, memory->memory_at + offset);
    if (result) status = gm__vulkan_device_fail(device, result, "vkBindBufferMemory", err);
  }
  if (status) {
    device->syms.vkDestroyBuffer(device->handle, view, NULL);
    return status;
  }
  *out_view = (uint64_t)view;
  return GM_OK;
}

gm_status gm__vulkan_view_destroy(void *user, uint64_t view, gm_close_mode mode, gm_error *err) {
  (void)err;
  gm__vulkan_device *device = user;
  if (mode == GM_CLOSE_NORMAL) device->syms.vkDestroyBuffer(device->handle, (VkBuffer)view, NULL);
  return GM_OK;
}
