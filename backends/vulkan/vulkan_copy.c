#include "backends/vulkan/vulkan_copy.h"

#include <string.h>

#include "backends/vulkan/vulkan_command.h"
#include "backends/vulkan/vulkan_map.h"
#include "core/base/error.h"

/* Invariants: a staging slot is given back with the point of the submission that uses it, on every path; the source of
 * a write has been read when the call returns. */

enum { COPY_MANY_WINDOW = 64 }; /* items between two barriers */

gm_status gm__vulkan_copy_finish(gm__vulkan_device *device, const gm_backend_point *point, gm_backend_point *out,
                                 gm_error *err) {
  if (!out) return gm__vulkan_point_wait(device, point, UINT64_MAX, err);
  *out = *point;
  return GM_OK;
}

gm_status gm__vulkan_copy_abandon(gm__vulkan_device *device, const gm_backend_point *point, gm_status status) {
  gm__vulkan_point_wait(device, point, UINT64_MAX, NULL);
  return status;
}

bool gm__vulkan_copy_by_host(const gm__vulkan_memory *memory) {
  return gm__vulkan_visible(memory) && (memory->wrapped || (memory->type.flags & GM_MEMORY_HOST_CACHED));
}

static VkBufferCopy copy_region(const gm__vulkan_memory *src, uint64_t src_offset, const gm__vulkan_memory *dst,
                                uint64_t dst_offset, uint64_t bytes) {
  return (VkBufferCopy){
      .srcOffset = src->buffer_at + src_offset, .dstOffset = dst->buffer_at + dst_offset, .size = bytes};
}

static void copy_record(const gm__vulkan_recording *recording, const gm__vulkan_memory *src, uint64_t src_offset,
                        const gm__vulkan_memory *dst, uint64_t dst_offset, uint64_t bytes) {
  const VkBufferCopy region = copy_region(src, src_offset, dst, dst_offset, bytes);
  recording->device->syms.vkCmdCopyBuffer(recording->buffer, src->buffer, dst->buffer, 1, &region);
}

/* One copy between two buffers as a submission of its own. */
static gm_status copy_submit(gm__vulkan_stream *stream, const gm__vulkan_memory *src, uint64_t src_offset,
                             const gm__vulkan_memory *dst, uint64_t dst_offset, uint64_t bytes, gm_backend_point *out,
                             gm_error *err) {
  gm__vulkan_recording recording;
  gm_status status = gm__vulkan_command_begin(stream->device, stream->queue->family, &recording, err);
  if (status) return status;
  copy_record(&recording, src, src_offset, dst, dst_offset, bytes);
  return gm__vulkan_command_submit(&recording, stream, out, err);
}

static uint64_t copy_min(uint64_t a, uint64_t b) { return a < b ? a : b; }

static gm_status copy_write_chunk(gm__vulkan_stream *stream, const gm__vulkan_memory *dst, uint64_t offset,
                                  const unsigned char *src, uint64_t left, uint64_t *out_done, gm_backend_point *out,
                                  gm_error *err) {
  gm__vulkan_device *device = stream->device;
  gm__vulkan_slot slot;
  gm_status status = gm__vulkan_staging_take(device, &slot, err);
  if (status) return status;
  uint64_t bytes = copy_min(left, slot.bytes);
  memcpy(slot.host, src, bytes);
  status = gm__vulkan_flush(device, slot.memory, slot.offset, bytes, err);
  if (!status) status = copy_submit(stream, slot.memory, slot.offset, dst, offset, bytes, out, err);
  gm__vulkan_staging_give(device, &slot, status ? NULL : out);
  *out_done = bytes;
  return status;
}

static gm_status copy_write_staged(gm__vulkan_stream *stream, const gm__vulkan_memory *dst, uint64_t offset,
                                   const unsigned char *src, uint64_t bytes, gm_backend_point *out, gm_error *err) {
  gm_backend_point point = {0};
  for (uint64_t at = 0, done = 0; at < bytes; at += done) {
    gm_status status = copy_write_chunk(stream, dst, offset + at, src + at, bytes - at, &done, &point, err);
    if (status) return gm__vulkan_copy_abandon(stream->device, &point, status);
  }
  return gm__vulkan_copy_finish(stream->device, &point, out, err);
}

/* The chunk is in the caller's memory when this returns. */
static gm_status copy_read_chunk(gm__vulkan_stream *stream, const gm__vulkan_memory *src, uint64_t offset,
                                 unsigned char *dst, uint64_t left, uint64_t *out_done, gm_error *err) {
  gm__vulkan_device *device = stream->device;
  gm__vulkan_slot slot;
  gm_status status = gm__vulkan_staging_take(device, &slot, err);
  if (status) return status;
  gm_backend_point point = {0};
  uint64_t bytes = copy_min(left, slot.bytes);
  status = copy_submit(stream, src, offset, slot.memory, slot.offset, bytes, &point, err);
  if (!status) status = gm__vulkan_point_wait(device, &point, UINT64_MAX, err);
  if (!status) status = gm__vulkan_invalidate(device, slot.memory, slot.offset, bytes, err);
  if (!status) memcpy(dst, slot.host, bytes);
  gm__vulkan_staging_give(device, &slot, &point);
  *out_done = bytes;
  return status;
}

static gm_status copy_read_staged(gm__vulkan_stream *stream, const gm__vulkan_memory *src, uint64_t offset,
                                  unsigned char *dst, uint64_t bytes, gm_error *err) {
  for (uint64_t at = 0, done = 0; at < bytes; at += done) {
    gm_status status = copy_read_chunk(stream, src, offset + at, dst + at, bytes - at, &done, err);
    if (status) return status;
  }
  return GM_OK;
}

static gm_status copy_write_by_host(gm__vulkan_stream *stream, gm__vulkan_memory *dst, uint64_t offset, const void *src,
                                    uint64_t bytes, gm_error *err) {
  unsigned char *host;
  gm_status status = gm__vulkan_stream_drain(stream, err);
  if (!status) status = gm__vulkan_host(stream->device, dst, &host, err);
  if (status) return status;
  memcpy(host + offset, src, bytes);
  return gm__vulkan_flush(stream->device, dst, offset, bytes, err);
}

static gm_status copy_read_by_host(gm__vulkan_stream *stream, gm__vulkan_memory *src, uint64_t offset, void *dst,
                                   uint64_t bytes, gm_error *err) {
  unsigned char *host;
  gm_status status = gm__vulkan_stream_drain(stream, err);
  if (!status) status = gm__vulkan_host(stream->device, src, &host, err);
  if (!status) status = gm__vulkan_invalidate(stream->device, src, offset, bytes, err);
  if (!status) memcpy(dst, host + offset, bytes);
  return status;
}

gm_status gm__vulkan_copy_check(const gm__vulkan_stream *stream, const char *op, gm_error *err) {
  gm_status status = gm__vulkan_device_state(stream->device, err);
  return status ? status : gm__vulkan_stream_may_submit(stream, op, err);
}

gm_status gm__vulkan_op_copy_to_device(void *device, void *stream, const gm_memory *dst, uint64_t offset,
                                       const void *src, uint64_t bytes, gm_backend_point *out, gm_error *err) {
  (void)device;
  gm__vulkan_memory *memory = gm__vulkan_memory_of(dst);
  gm_status status = gm__vulkan_copy_check(stream, "gm_backend_ops.copy_to_device", err);
  if (status) return status;
  const bool by_host = gm__vulkan_visible(memory) && gm__vulkan_whole_atoms(memory, offset, bytes) &&
                       gm__vulkan_stream_may_drain(stream, out);
  if (!by_host) return copy_write_staged(stream, memory, offset, src, bytes, out, err);
  status = copy_write_by_host(stream, memory, offset, src, bytes, err);
  if (!status && out) *out = (gm_backend_point){0};
  return status;
}

gm_status gm__vulkan_op_copy_to_host(void *device, void *stream, const gm_memory *src, uint64_t offset, void *dst,
                                     uint64_t bytes, gm_backend_point *out, gm_error *err) {
  (void)device;
  gm__vulkan_memory *memory = gm__vulkan_memory_of(src);
  gm_status status = gm__vulkan_copy_check(stream, "gm_backend_ops.copy_to_host", err);
  if (status) return status;
  status = gm__vulkan_copy_by_host(memory) ? copy_read_by_host(stream, memory, offset, dst, bytes, err)
                                           : copy_read_staged(stream, memory, offset, dst, bytes, err);
  if (!status && out) *out = (gm_backend_point){0};
  return status;
}

gm_status gm__vulkan_op_copy(void *device, void *user, const gm_copy_item *item, gm_backend_point *out, gm_error *err) {
  gm__vulkan_stream *stream = user;
  gm_backend_point point = {0};
  gm_status status = gm__vulkan_copy_check(stream, "gm_backend_ops.copy", err);
  if (!status && item->bytes) {
    status = copy_submit(stream, gm__vulkan_memory_of(item->src), item->src_offset, gm__vulkan_memory_of(item->dst),
                         item->dst_offset, item->bytes, &point, err);
  }
  return status ? status : gm__vulkan_copy_finish(device, &point, out, err);
}

static bool copy_ranges_meet(const gm_memory *a, uint64_t a_offset, uint64_t a_bytes, const gm_memory *b,
                             uint64_t b_offset, uint64_t b_bytes) {
  const gm__vulkan_memory *x = gm__vulkan_memory_of(a), *y = gm__vulkan_memory_of(b);
  if (x->memory != y->memory || (x->range && x->buffer != y->buffer)) return false;
  uint64_t at = (x->range ? x->buffer_at : x->memory_at) + a_offset;
  uint64_t bt = (y->range ? y->buffer_at : y->memory_at) + b_offset;
  return at < bt + b_bytes && bt < at + a_bytes;
}

/* Must `later` see, or not disturb, what `earlier` does? */
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

gm_status gm__vulkan_op_copy_many(void *user, void *user_stream, const gm_copy_item *items, uint32_t count,
                                  gm_backend_point *out, gm_error *err) {
  gm__vulkan_device *device = user;
  gm__vulkan_stream *stream = user_stream;
  gm__vulkan_recording recording;
  gm_status status = gm__vulkan_copy_check(stream, "gm_backend_ops.copy_many", err);
  if (!status) status = gm__vulkan_command_begin(device, stream->queue->family, &recording, err);
  if (status) return status;
  uint32_t first = 0; /* since the last barrier */
  for (uint32_t i = 0; i < count; i++) {
    if (!items[i].bytes) continue;
    if (copy_needs_barrier(items, first, i)) {
      gm__vulkan_command_barrier(&recording);
      first = i;
    }
    copy_record(&recording, gm__vulkan_memory_of(items[i].src), items[i].src_offset, gm__vulkan_memory_of(items[i].dst),
                items[i].dst_offset, items[i].bytes);
  }
  gm_backend_point point;
  status = gm__vulkan_command_submit(&recording, stream, &point, err);
  return status ? status : gm__vulkan_copy_finish(device, &point, out, err);
}

gm_status gm__vulkan_op_copy_record(void *user, uintptr_t native_command_buffer, const gm_copy_item *item,
                                    gm_error *err) {
  gm__vulkan_device *device = user;
  if (!native_command_buffer) {
    return gm__bad_argument(err, "gm_backend_ops.copy_record", "`native_command_buffer` is 0");
  }
  if (!item->bytes) return GM_OK;
  const gm__vulkan_recording recording = {.device = device, .buffer = (VkCommandBuffer)native_command_buffer};
  copy_record(&recording, gm__vulkan_memory_of(item->src), item->src_offset, gm__vulkan_memory_of(item->dst),
              item->dst_offset, item->bytes);
  return GM_OK;
}
