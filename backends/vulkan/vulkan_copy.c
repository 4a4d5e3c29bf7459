#include "backends/vulkan/vulkan_copy.h"

#include <string.h>

#include "backends/vulkan/vulkan_command.h"
#include "backends/vulkan/vulkan_entries.h"
#include "backends/vulkan/vulkan_host.h"
#include "backends/vulkan/vulkan_map.h"
#include "core/base/saturate.h"

/* Copies of boxes; a plain copy is a box of one row. Vulkan copies lists of ranges, so gm walks a box row by row. Rows
 * that touch on both sides are one range. Through staging, the pieces of a batch are packed into one slot. Invariants:
 * a staging slot is given back with the point of the submission that uses it, on every path. gm has read the source of
 * a write when the call returns. */

gm_status gm__vulkan_copy_check(const gm__vulkan_stream *stream, const char *op, gm_error *err) {
  gm_status status = gm__vulkan_device_state(stream->device, err);
  return status ? status : gm__vulkan_stream_may_submit(stream, op, err);
}

gm_status gm__vulkan_copy_finish(gm__vulkan_device *device, gm_status status, const gm_backend_point *point,
                                 gm_backend_point *out, gm_error *err) {
  if (status || !out) {
    const gm_status waited = gm__vulkan_point_wait(device, point, UINT64_MAX, status ? NULL : err);
    return status ? status : waited;
  }
  *out = *point;
  return GM_OK;
}

bool gm__vulkan_copy_by_host(const gm__vulkan_memory *memory) {
  return gm__vulkan_visible(memory) && (memory->wrapped || (memory->type.flags & GM_MEMORY_HOST_CACHED));
}

enum { COPY_PIECES = 64 };

typedef struct copy_piece {
  uint64_t src, dst, bytes;
} copy_piece;

/* The pieces of one submission. */
typedef struct copy_batch {
  copy_piece pieces[COPY_PIECES];
  uint32_t count;
  uint64_t bytes;
} copy_batch;

typedef struct copy_walk {
  gm_rect rect; /* with every pitch set, and with adjacent rows merged */
  uint64_t slice, row, at;
} copy_walk;

static void copy_merge(gm_rect *rect) {
  if (rect->src_row_pitch == rect->row_bytes && rect->dst_row_pitch == rect->row_bytes) {
    rect->row_bytes *= rect->rows;
    rect->rows = 1;
  }
  if (rect->rows == 1 && rect->src_slice_pitch == rect->row_bytes && rect->dst_slice_pitch == rect->row_bytes) {
    rect->row_bytes *= rect->slices;
    rect->slices = 1;
  }
}

static copy_walk copy_begin(const gm_rect *given) {
  gm_rect rect = *given;
  if (!rect.src_row_pitch) rect.src_row_pitch = rect.row_bytes;
  if (!rect.dst_row_pitch) rect.dst_row_pitch = rect.row_bytes;
  if (!rect.src_slice_pitch) rect.src_slice_pitch = rect.src_row_pitch * rect.rows;
  if (!rect.dst_slice_pitch) rect.dst_slice_pitch = rect.dst_row_pitch * rect.rows;
  if (rect.rows == 1) rect.src_row_pitch = rect.dst_row_pitch = rect.row_bytes; /* the slice pitches are set by now */
  copy_merge(&rect);
  if (!rect.row_bytes || !rect.rows) rect.slices = 0;
  return (copy_walk){.rect = rect};
}

/* The next piece, of at most `most` bytes. REQUIRES: copy_left. */
static copy_piece copy_step(copy_walk *walk, uint64_t most) {
  const gm_rect *rect = &walk->rect;
  uint64_t left = rect->row_bytes - walk->at;
  copy_piece piece = {
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

static bool copy_left(const copy_walk *walk) { return walk->slice < walk->rect.slices; }

/* Fill a batch with the next pieces, of at most `capacity` bytes together. False: the walk is over. */
static bool copy_next(copy_walk *walk, uint64_t capacity, copy_batch *batch) {
  batch->count = 0;
  batch->bytes = 0;
  while (copy_left(walk) && batch->count < COPY_PIECES && batch->bytes < capacity) {
    copy_piece piece = copy_step(walk, capacity - batch->bytes);
    batch->pieces[batch->count++] = piece;
    batch->bytes += piece.bytes;
  }
  return batch->count > 0;
}

/* Copy a batch between a slot, where its pieces are packed, and memory, where they lie at their places. */
static gm_status copy_submit_slot(gm__vulkan_stream *stream, const gm__vulkan_memory *memory,
                                  const gm__vulkan_slot *slot, const copy_batch *batch, bool to_slot,
                                  gm_backend_point *out, gm_error *err) {
  VkBufferCopy regions[COPY_PIECES];
  uint64_t packed = 0;
  for (uint32_t i = 0; i < batch->count; i++) {
    const copy_piece *piece = &batch->pieces[i];
    uint64_t at = memory->buffer_at + (to_slot ? piece->src : piece->dst);
    regions[i] = (VkBufferCopy){to_slot ? at : packed, to_slot ? packed : at, piece->bytes};
    packed += piece->bytes;
  }
  gm__vulkan_recording recording;
  gm_status status = gm__vulkan_command_begin(stream->device, stream->queue->family, &recording, err);
  if (status) return status;
  stream->device->syms.vkCmdCopyBuffer(recording.buffer, to_slot ? memory->buffer : slot->memory->buffer,
                                       to_slot ? slot->memory->buffer : memory->buffer, batch->count, regions);
  return gm__vulkan_command_submit(&recording, stream, out, err);
}

static gm_status copy_write_batch(gm__vulkan_stream *stream, const gm__vulkan_memory *dst, const unsigned char *src,
                                  copy_walk *walk, gm_backend_point *out, gm_error *err) {
  gm__vulkan_slot *slot;
  copy_batch batch;
  gm_status status = gm__vulkan_staging_take(stream->device, &slot, err);
  if (status) return status;
  copy_next(walk, slot->memory->bytes, &batch);
  unsigned char *packed = slot->host;
  for (uint32_t i = 0; i < batch.count; i++) {
    memcpy(packed, src + batch.pieces[i].src, batch.pieces[i].bytes);
    packed += batch.pieces[i].bytes;
  }
  status = gm__vulkan_flush(stream->device, slot->memory, 0, batch.bytes, err);
  if (!status) status = copy_submit_slot(stream, dst, slot, &batch, false, out, err);
  gm__vulkan_staging_give(stream->device, slot, status ? NULL : out);
  return status;
}

/* The bytes of the batch are in the caller's memory when this returns. */
static gm_status copy_read_batch(gm__vulkan_stream *stream, const gm__vulkan_memory *src, unsigned char *dst,
                                 copy_walk *walk, gm_error *err) {
  gm__vulkan_slot *slot;
  copy_batch batch;
  gm_backend_point point = {0};
  gm_status status = gm__vulkan_staging_take(stream->device, &slot, err);
  if (status) return status;
  copy_next(walk, slot->memory->bytes, &batch);
  status = copy_submit_slot(stream, src, slot, &batch, true, &point, err);
  if (!status) status = gm__vulkan_point_wait(stream->device, &point, UINT64_MAX, err);
  if (!status) status = gm__vulkan_invalidate(stream->device, slot->memory, 0, batch.bytes, err);
  const unsigned char *packed = slot->host;
  for (uint32_t i = 0; !status && i < batch.count; i++) {
    memcpy(dst + batch.pieces[i].dst, packed, batch.pieces[i].bytes);
    packed += batch.pieces[i].bytes;
  }
  gm__vulkan_staging_give(stream->device, slot, &point);
  return status;
}

static gm_status copy_write_by_host(gm__vulkan_stream *stream, gm__vulkan_memory *dst, const unsigned char *src,
                                    copy_walk *walk, gm_error *err) {
  unsigned char *host;
  gm_status status = gm__vulkan_stream_drain(stream, err);
  if (!status) status = gm__vulkan_host(stream->device, dst, &host, err);
  while (!status && copy_left(walk)) {
    copy_piece piece = copy_step(walk, UINT64_MAX);
    memcpy(host + piece.dst, src + piece.src, piece.bytes);
    status = gm__vulkan_flush(stream->device, dst, piece.dst, piece.bytes, err);
  }
  return status;
}

static gm_status copy_read_by_host(gm__vulkan_stream *stream, gm__vulkan_memory *src, unsigned char *dst,
                                   copy_walk *walk, gm_error *err) {
  unsigned char *host;
  gm_status status = gm__vulkan_stream_drain(stream, err);
  if (!status) status = gm__vulkan_host(stream->device, src, &host, err);
  while (!status && copy_left(walk)) {
    copy_piece piece = copy_step(walk, UINT64_MAX);
    status = gm__vulkan_invalidate(stream->device, src, piece.src, piece.bytes, err);
    if (!status) memcpy(dst + piece.dst, host + piece.src, piece.bytes);
  }
  return status;
}

/* ---- host memory that the device reaches itself ---- */

/* Bytes from the begin of host memory to the end of the box. UINT64_MAX: more than any range has. */
static uint64_t copy_end(uint64_t offset, uint64_t slice_pitch, uint64_t row_pitch, const gm_rect *rect) {
  const uint64_t slices = gm__mul_sat(rect->slices - 1, slice_pitch), rows = gm__mul_sat(rect->rows - 1, row_pitch);
  return gm__add_sat(gm__add_sat(offset, slices), gm__add_sat(rows, rect->row_bytes));
}

/* Submits the copy of a box, if there is one. */
static gm_status copy_submit(gm__vulkan_stream *stream, const gm__vulkan_memory *to, const gm__vulkan_memory *from,
                             copy_walk *walk, gm_backend_point *out, gm_error *err) {
  copy_batch batch;
  gm__vulkan_recording recording;
  if (!copy_left(walk)) return GM_OK;
  const gm_status status = gm__vulkan_command_begin(stream->device, stream->queue->family, &recording, err);
  if (status) return status;
  while (copy_next(walk, UINT64_MAX, &batch)) {
    VkBufferCopy regions[COPY_PIECES];
    for (uint32_t i = 0; i < batch.count; i++) {
      const copy_piece *piece = &batch.pieces[i];
      regions[i] = (VkBufferCopy){from->buffer_at + piece->src, to->buffer_at + piece->dst, piece->bytes};
    }
    stream->device->syms.vkCmdCopyBuffer(recording.buffer, from->buffer, to->buffer, batch.count, regions);
  }
  return gm__vulkan_command_submit(&recording, stream, out, err);
}

/* Copies between memory and the caller's registered memory at `host`. False: it is not registered as a whole. */
static bool copy_registered(gm__vulkan_stream *stream, const gm__vulkan_memory *memory, const void *host, bool write,
                            copy_walk *walk, gm_backend_point *point, gm_status *status, gm_error *err) {
  gm_rect *rect = &walk->rect;
  uint64_t offset = 0;
  if (!copy_left(walk)) return false;
  const uint64_t end = write ? copy_end(rect->src_offset, rect->src_slice_pitch, rect->src_row_pitch, rect)
                             : copy_end(rect->dst_offset, rect->dst_slice_pitch, rect->dst_row_pitch, rect);
  gm__vulkan_host_range *range = gm__vulkan_host_take(stream->device, host, end, &offset);
  if (!range) return false;
  const gm__vulkan_memory *lent = gm__vulkan_host_memory(range);
  *(write ? &rect->src_offset : &rect->dst_offset) += offset;
  *status = copy_submit(stream, write ? memory : lent, write ? lent : memory, walk, point, err);
  gm__vulkan_host_give(stream->device, range, point);
  return true;
}

/* Does the box end at atoms? The rows of a box may end inside one. */
static bool copy_whole_atoms(const gm__vulkan_memory *dst, const gm_rect *rect) {
  const bool line = rect->rows == 1 && rect->slices == 1;
  return dst->type.coherent || (line && gm__vulkan_whole_atoms(dst, rect->dst_offset, rect->row_bytes));
}

static gm_status copy_write(gm__vulkan_stream *stream, const gm_memory *dst, const void *src, const gm_rect *rect,
                            const char *op, gm_backend_point *out, gm_error *err) {
  gm__vulkan_memory *memory = gm__vulkan_memory_of(dst);
  copy_walk walk = copy_begin(rect);
  gm_backend_point point = {0};
  gm_status status = gm__vulkan_copy_check(stream, op, err);
  if (status) return status;
  if (gm__vulkan_visible(memory) && copy_whole_atoms(memory, &walk.rect) && gm__vulkan_stream_may_drain(stream, out)) {
    status = copy_write_by_host(stream, memory, src, &walk, err);
  } else if (!copy_registered(stream, memory, src, true, &walk, &point, &status, err)) {
    while (!status && copy_left(&walk)) status = copy_write_batch(stream, memory, src, &walk, &point, err);
  }
  return gm__vulkan_copy_finish(stream->device, status, &point, out, err);
}

/* But for registered memory the bytes have arrived when this returns, and the point has passed. */
static gm_status copy_read(gm__vulkan_stream *stream, const gm_memory *src, void *dst, const gm_rect *rect,
                           const char *op, gm_backend_point *out, gm_error *err) {
  gm__vulkan_memory *memory = gm__vulkan_memory_of(src);
  copy_walk walk = copy_begin(rect);
  gm_backend_point point = {0};
  gm_status status = gm__vulkan_copy_check(stream, op, err);
  if (status) return status;
  const bool by_host = gm__vulkan_copy_by_host(memory);
  if ((out || !by_host) && copy_registered(stream, memory, dst, false, &walk, &point, &status, err)) {
    return gm__vulkan_copy_finish(stream->device, status, &point, out, err);
  }
  if (by_host) {
    status = copy_read_by_host(stream, memory, dst, &walk, err);
  } else {
    while (!status && copy_left(&walk)) status = copy_read_batch(stream, memory, dst, &walk, err);
  }
  if (!status && out) *out = (gm_backend_point){0};
  return status;
}

static gm_status copy_between(gm__vulkan_stream *stream, const gm_memory *dst, const gm_memory *src,
                              const gm_rect *rect, const char *op, gm_backend_point *out, gm_error *err) {
  copy_walk walk = copy_begin(rect);
  gm_backend_point point = {0};
  gm_status status = gm__vulkan_copy_check(stream, op, err);
  if (!status) status = copy_submit(stream, gm__vulkan_memory_of(dst), gm__vulkan_memory_of(src), &walk, &point, err);
  return gm__vulkan_copy_finish(stream->device, status, &point, out, err);
}

/* A plain copy is a box of one row. */
static gm_rect copy_line(uint64_t src_offset, uint64_t dst_offset, uint64_t bytes) {
  return (gm_rect){.row_bytes = bytes, .rows = 1, .slices = 1, .src_offset = src_offset, .dst_offset = dst_offset};
}

gm_status gm__vulkan_op_copy_to_device(void *device, void *stream, const gm_memory *dst, uint64_t offset,
                                       const void *src, uint64_t bytes, gm_backend_point *out, gm_error *err) {
  (void)device;
  const gm_rect line = copy_line(0, offset, bytes);
  return copy_write(stream, dst, src, &line, "gm_backend_ops.copy_to_device", out, err);
}

gm_status gm__vulkan_op_copy_to_host(void *device, void *stream, const gm_memory *src, uint64_t offset, void *dst,
                                     uint64_t bytes, gm_backend_point *out, gm_error *err) {
  (void)device;
  const gm_rect line = copy_line(offset, 0, bytes);
  return copy_read(stream, src, dst, &line, "gm_backend_ops.copy_to_host", out, err);
}

gm_status gm__vulkan_op_copy(void *device, void *stream, const gm_copy_item *item, gm_backend_point *out,
                             gm_error *err) {
  (void)device;
  const gm_rect line = copy_line(item->src_offset, item->dst_offset, item->bytes);
  return copy_between(stream, item->dst, item->src, &line, "gm_backend_ops.copy", out, err);
}

gm_status gm__vulkan_op_rect_to_device(void *device, void *stream, const gm_memory *dst, const void *src,
                                       const gm_rect *rect, gm_backend_point *out, gm_error *err) {
  (void)device;
  return copy_write(stream, dst, src, rect, "gm_backend_ops.rect_to_device", out, err);
}

gm_status gm__vulkan_op_rect_to_host(void *device, void *stream, const gm_memory *src, void *dst, const gm_rect *rect,
                                     gm_backend_point *out, gm_error *err) {
  (void)device;
  return copy_read(stream, src, dst, rect, "gm_backend_ops.rect_to_host", out, err);
}

gm_status gm__vulkan_op_rect_copy(void *device, void *stream, const gm_memory *dst, const gm_memory *src,
                                  const gm_rect *rect, gm_backend_point *out, gm_error *err) {
  (void)device;
  return copy_between(stream, dst, src, rect, "gm_backend_ops.rect_copy", out, err);
}
