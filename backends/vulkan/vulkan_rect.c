/* Boxes of bytes. Vulkan copies lists of ranges, so a box is walked row by row; rows that lie one after the other on
 * both sides are one range. Through staging the pieces of a batch are packed into one slot. */
#include <string.h>

#include "backends/vulkan/vulkan_command.h"
#include "backends/vulkan/vulkan_copy.h"
#include "backends/vulkan/vulkan_map.h"
#include "core/base/error.h"

enum { RECT_PIECES = 64 };

typedef struct rect_piece {
  uint64_t src, dst, bytes;
} rect_piece;

/* The pieces of one submission. */
typedef struct rect_batch {
  rect_piece pieces[RECT_PIECES];
  uint32_t count;
  uint64_t bytes;
} rect_batch;

typedef struct rect_walk {
  gm_rect rect; /* pitches filled in, rows merged where they touch */
  uint64_t slice, row, at;
} rect_walk;

static void rect_merge(gm_rect *rect) {
  if (rect->src_row_pitch == rect->row_bytes && rect->dst_row_pitch == rect->row_bytes) {
    rect->row_bytes *= rect->rows;
    rect->rows = 1;
  }
  if (rect->rows == 1 && rect->src_slice_pitch == rect->row_bytes && rect->dst_slice_pitch == rect->row_bytes) {
    rect->row_bytes *= rect->slices;
    rect->slices = 1;
  }
}

static rect_walk rect_begin(const gm_rect *given) {
  gm_rect rect = *given;
  if (!rect.src_row_pitch) rect.src_row_pitch = rect.row_bytes;
  if (!rect.dst_row_pitch) rect.dst_row_pitch = rect.row_bytes;
  if (!rect.src_slice_pitch) rect.src_slice_pitch = rect.src_row_pitch * rect.rows;
  if (!rect.dst_slice_pitch) rect.dst_slice_pitch = rect.dst_row_pitch * rect.rows;
  if (rect.rows == 1) rect.src_row_pitch = rect.dst_row_pitch = rect.row_bytes; /* after the slices' pitches */
  rect_merge(&rect);
  if (!rect.row_bytes || !rect.rows) rect.slices = 0;
  return (rect_walk){.rect = rect};
}

/* The next piece, at most `most` bytes; `walk` stands before a row's end. */
static rect_piece rect_step(rect_walk *walk, uint64_t most) {
  const gm_rect *rect = &walk->rect;
  uint64_t left = rect->row_bytes - walk->at;
  rect_piece piece = {
      .src = rect->src_offset + walk->slice * rect->src_slice_pitch + walk->row * rect->src_row_pitch + walk->at,
      .dst = rect->dst_offset + walk->slice * rect->dst_slice_pitch + walk->row * rect->dst_row_pitch + walk->at,
      .bytes = left < most ? left : most};
  walk->at += piece.bytes;
  if (walk->at < rect->row_bytes) return piece;
  walk->at = 0;
  if (++walk->row < rect->rows) return piece;
  walk->row = 0;
  walk->slice++;
  return piece;
}

/* As many pieces as there are, fit in `capacity` bytes and in a batch; false when the walk is over. */
static bool rect_next(rect_walk *walk, uint64_t capacity, rect_batch *batch) {
  batch->count = 0;
  batch->bytes = 0;
  while (walk->slice < walk->rect.slices && batch->count < RECT_PIECES && batch->bytes < capacity) {
    rect_piece piece = rect_step(walk, capacity - batch->bytes);
    batch->pieces[batch->count++] = piece;
    batch->bytes += piece.bytes;
  }
  return batch->count > 0;
}

static void rect_record(const gm__vulkan_recording *recording, VkBuffer src, VkBuffer dst, const VkBufferCopy *regions,
                        uint32_t count) {
  recording->device->syms.vkCmdCopyBuffer(recording->buffer, src, dst, count, regions);
}

/* A batch between a slot, where the pieces are packed, and memory, where they lie as they are. */
static gm_status rect_submit_slot(gm__vulkan_stream *stream, const gm__vulkan_memory *memory,
                                  const gm__vulkan_slot *slot, const rect_batch *batch, bool to_slot,
                                  gm_backend_point *out, gm_error *err) {
  VkBufferCopy regions[RECT_PIECES];
  uint64_t packed = slot->offset;
  for (uint32_t i = 0; i < batch->count; i++) {
    const rect_piece *piece = &batch->pieces[i];
    uint64_t at = memory->buffer_at + (to_slot ? piece->src : piece->dst);
    regions[i] = (VkBufferCopy){to_slot ? at : packed, to_slot ? packed : at, piece->bytes};
    packed += piece->bytes;
  }
  gm__vulkan_recording recording;
  gm_status status = gm__vulkan_command_begin(stream->device, stream->queue->family, &recording, err);
  if (status) return status;
  rect_record(&recording, to_slot ? memory->buffer : slot->memory->buffer,
              to_slot ? slot->memory->buffer : memory->buffer, regions, batch->count);
  return gm__vulkan_command_submit(&recording, stream, out, err);
}

static gm_status rect_write_batch(gm__vulkan_stream *stream, const gm__vulkan_memory *dst, const unsigned char *src,
                                  rect_walk *walk, gm_backend_point *out, gm_error *err) {
  gm__vulkan_slot slot;
  rect_batch batch;
  gm_status status = gm__vulkan_staging_take(stream->device, &slot, err);
  if (status) return status;
  rect_next(walk, slot.bytes, &batch);
  unsigned char *packed = slot.host;
  for (uint32_t i = 0; i < batch.count; i++) {
    memcpy(packed, src + batch.pieces[i].src, batch.pieces[i].bytes);
    packed += batch.pieces[i].bytes;
  }
  status = gm__vulkan_flush(stream->device, slot.memory, slot.offset, batch.bytes, err);
  if (!status) status = rect_submit_slot(stream, dst, &slot, &batch, false, out, err);
  gm__vulkan_staging_give(stream->device, &slot, status ? NULL : out);
  return status;
}

static gm_status rect_read_batch(gm__vulkan_stream *stream, const gm__vulkan_memory *src, unsigned char *dst,
                                 rect_walk *walk, gm_error *err) {
  gm__vulkan_slot slot;
  rect_batch batch;
  gm_backend_point point = {0};
  gm_status status = gm__vulkan_staging_take(stream->device, &slot, err);
  if (status) return status;
  rect_next(walk, slot.bytes, &batch);
  status = rect_submit_slot(stream, src, &slot, &batch, true, &point, err);
  if (!status) status = gm__vulkan_point_wait(stream->device, &point, UINT64_MAX, err);
  if (!status) status = gm__vulkan_invalidate(stream->device, slot.memory, slot.offset, batch.bytes, err);
  const unsigned char *packed = slot.host;
  for (uint32_t i = 0; !status && i < batch.count; i++) {
    memcpy(dst + batch.pieces[i].dst, packed, batch.pieces[i].bytes);
    packed += batch.pieces[i].bytes;
  }
  gm__vulkan_staging_give(stream->device, &slot, &point);
  return status;
}

static bool rect_left(const rect_walk *walk) { return walk->slice < walk->rect.slices; }

static gm_status rect_write_by_host(gm__vulkan_stream *stream, gm__vulkan_memory *dst, const unsigned char *src,
                                    rect_walk *walk, gm_error *err) {
  unsigned char *host;
  gm_status status = gm__vulkan_stream_drain(stream, err);
  if (!status) status = gm__vulkan_host(stream->device, dst, &host, err);
  while (!status && rect_left(walk)) {
    rect_piece piece = rect_step(walk, UINT64_MAX);
    memcpy(host + piece.dst, src + piece.src, piece.bytes);
    status = gm__vulkan_flush(stream->device, dst, piece.dst, piece.bytes, err);
  }
  return status;
}

static gm_status rect_read_by_host(gm__vulkan_stream *stream, gm__vulkan_memory *src, unsigned char *dst,
                                   rect_walk *walk, gm_error *err) {
  unsigned char *host;
  gm_status status = gm__vulkan_stream_drain(stream, err);
  if (!status) status = gm__vulkan_host(stream->device, src, &host, err);
  while (!status && rect_left(walk)) {
    rect_piece piece = rect_step(walk, UINT64_MAX);
    status = gm__vulkan_invalidate(stream->device, src, piece.src, piece.bytes, err);
    if (!status) memcpy(dst + piece.dst, host + piece.src, piece.bytes);
  }
  return status;
}

gm_status gm__vulkan_op_rect_to_device(void *device, void *stream, const gm_memory *dst, const void *src,
                                       const gm_rect *rect, gm_backend_point *out, gm_error *err) {
  gm__vulkan_memory *memory = gm__vulkan_memory_of(dst);
  rect_walk walk = rect_begin(rect);
  gm_backend_point point = {0};
  gm_status status = gm__vulkan_copy_check(stream, "gm_backend_ops.rect_to_device", err);
  const bool whole = memory->type.coherent; /* else rows may end inside an atom */
  if (!status && gm__vulkan_visible(memory) && whole && gm__vulkan_stream_may_drain(stream, out)) {
    status = rect_write_by_host(stream, memory, src, &walk, err);
  } else {
    while (!status && rect_left(&walk)) status = rect_write_batch(stream, memory, src, &walk, &point, err);
  }
  return status ? gm__vulkan_copy_abandon(device, &point, status) : gm__vulkan_copy_finish(device, &point, out, err);
}

gm_status gm__vulkan_op_rect_to_host(void *device, void *stream, const gm_memory *src, void *dst, const gm_rect *rect,
                                     gm_backend_point *out, gm_error *err) {
  (void)device;
  gm__vulkan_memory *memory = gm__vulkan_memory_of(src);
  rect_walk walk = rect_begin(rect);
  gm_status status = gm__vulkan_copy_check(stream, "gm_backend_ops.rect_to_host", err);
  if (!status && gm__vulkan_copy_by_host(memory)) {
    status = rect_read_by_host(stream, memory, dst, &walk, err);
  } else {
    while (!status && rect_left(&walk)) status = rect_read_batch(stream, memory, dst, &walk, err);
  }
  if (!status && out) *out = (gm_backend_point){0};
  return status;
}

gm_status gm__vulkan_op_rect_copy(void *device, void *user, const gm_memory *dst, const gm_memory *src,
                                  const gm_rect *rect, gm_backend_point *out, gm_error *err) {
  gm__vulkan_stream *stream = user;
  const gm__vulkan_memory *to = gm__vulkan_memory_of(dst), *from = gm__vulkan_memory_of(src);
  rect_walk walk = rect_begin(rect);
  rect_batch batch;
  gm_backend_point point = {0};
  gm__vulkan_recording recording;
  gm_status status = gm__vulkan_copy_check(stream, "gm_backend_ops.rect_copy", err);
  if (!status) status = gm__vulkan_command_begin(device, stream->queue->family, &recording, err);
  if (status) return status;
  while (rect_next(&walk, UINT64_MAX, &batch)) {
    VkBufferCopy regions[RECT_PIECES];
    for (uint32_t i = 0; i < batch.count; i++) {
      const rect_piece *piece = &batch.pieces[i];
      regions[i] = (VkBufferCopy){from->buffer_at + piece->src, to->buffer_at + piece->dst, piece->bytes};
    }
    rect_record(&recording, from->buffer, to->buffer, regions, batch.count);
  }
  status = gm__vulkan_command_submit(&recording, stream, &point, err);
  return status ? status : gm__vulkan_copy_finish(device, &point, out, err);
}
