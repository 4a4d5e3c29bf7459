/* Copies of many items in one submission, and into an engine's command buffer. */
#include "backends/vulkan/vulkan_command.h"
#include "backends/vulkan/vulkan_copy.h"
#include "backends/vulkan/vulkan_entries.h"
#include "core/base/error.h"

enum { COPY_MANY_WINDOW = 64 }; /* items between two barriers */

static void copy_record(const gm__vulkan_recording *recording, const gm_copy_item *item) {
  const gm__vulkan_memory *src = gm__vulkan_memory_of(item->src), *dst = gm__vulkan_memory_of(item->dst);
  const VkBufferCopy region = {src->buffer_at + item->src_offset, dst->buffer_at + item->dst_offset, item->bytes};
  if (item->bytes) recording->device->syms.vkCmdCopyBuffer(recording->buffer, src->buffer, dst->buffer, 1, &region);
}

static bool copy_ranges_meet(const gm_memory *a, uint64_t a_offset, uint64_t a_bytes, const gm_memory *b,
                             uint64_t b_offset, uint64_t b_bytes) {
  const gm__vulkan_memory *x = gm__vulkan_memory_of(a), *y = gm__vulkan_memory_of(b);
  if (x->memory != y->memory || (x->range && x->buffer != y->buffer)) return false;
  uint64_t at = (x->range ? x->buffer_at : x->memory_at) + a_offset;
  uint64_t bt = (y->range ? y->buffer_at : y->memory_at) + b_offset;
  return at < bt + b_bytes && bt < at + a_bytes;
}

/* Does `later` need the bytes of `earlier`, or overwrite bytes of it? */
static bool copy_items_meet(const gm_copy_item *earlier, const gm_copy_item *later) {
  return copy_ranges_meet(earlier->dst, earlier->dst_offset, earlier->bytes, later->src, later->src_offset,
                          later->bytes) ||
         copy_ranges_meet(earlier->dst, earlier->dst_offset, earlier->bytes, later->dst, later->dst_offset,
                          later->bytes) ||
         copy_ranges_meet(earlier->src, earlier->src_offset, earlier->bytes, later->dst, later->dst_offset,
                          later->bytes);
}

static bool copy_needs_barrier(const gm_copy_item *items, uint32_t first, uint32_t index) {
  if (index - first >= COPY_MANY_WINDOW) return true;
  for (uint32_t i = first; i < index; i++) {
    if (copy_items_meet(&items[i], &items[index])) return true;
  }
  return false;
}

static void copy_record_all(const gm__vulkan_recording *recording, const gm_copy_item *items, uint32_t count) {
  uint32_t first = 0; /* the first item after the last barrier */
  for (uint32_t i = 0; i < count; i++) {
    if (items[i].bytes && copy_needs_barrier(items, first, i)) {
      gm__vulkan_command_barrier(recording);
      first = i;
    }
    copy_record(recording, &items[i]);
  }
}

gm_status gm__vulkan_op_copy_many(void *user, void *user_stream, const gm_copy_item *items, uint32_t count,
                                  gm_backend_point *out, gm_error *err) {
  gm__vulkan_device *device = user;
  gm__vulkan_stream *stream = user_stream;
  gm__vulkan_recording recording;
  gm_status status = gm__vulkan_copy_check(stream, "gm_backend_ops.copy_many", err);
  if (!status) status = gm__vulkan_command_begin(device, stream->queue->family, &recording, err);
  if (status) return status;
  gm__vulkan_kernel_slot *kernel = gm__vulkan_kernel_take(device, stream, items, count);
  if (kernel) {
    gm__vulkan_kernel_record(&recording, kernel);
  } else {
    copy_record_all(&recording, items, count);
  }
  gm_backend_point point = {0};
  status = gm__vulkan_command_submit(&recording, stream, &point, err);
  if (kernel) gm__vulkan_kernel_give(kernel, &point);
  return gm__vulkan_copy_finish(device, status, &point, out, err);
}

gm_status gm__vulkan_op_copy_record(void *user, uintptr_t native_command_buffer, const gm_copy_item *item,
                                    gm_error *err) {
  const gm__vulkan_recording recording = {.device = user, .buffer = (VkCommandBuffer)native_command_buffer};
  if (!native_command_buffer) {
    return gm__bad_argument(err, "gm_backend_ops.copy_record", "`native_command_buffer` is 0");
  }
  copy_record(&recording, item);
  return GM_OK;
}
