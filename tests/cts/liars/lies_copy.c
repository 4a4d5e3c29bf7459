#include "cts/liars/lies_copy.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cts/liars/lazy.h"

/* ---- copies and fills ---- */

enum {
  LIAR_WORD_FILL = 1 << 20,
  LIAR_DMA_MOST = 4 << 20,
  LIAR_SMALL = 64 << 10,
  LIAR_RING = 128,
  LIAR_GROUP_BYTES = 64 * 4
};

/* Large fills are made of words; the bytes after the last whole one are forgotten. */
gm_status liar_fill_in_words(void *device, void *stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                             const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err) {
  const uint64_t filled = bytes < LIAR_WORD_FILL ? bytes : bytes / 4 * 4;
  return lazy_ops.fill(device, stream, dst, offset, filled, pattern, pattern_bytes, out, err);
}

/* The copy engine takes 4 MiB at once; the part after the last whole one is forgotten. */
gm_status liar_copy_whole_parts(void *device, void *stream, const gm_copy_item *item, gm_backend_point *out,
                                gm_error *err) {
  gm_copy_item less = *item;
  if (less.bytes > LIAR_DMA_MOST) less.bytes -= less.bytes % LIAR_DMA_MOST;
  return lazy_ops.copy(device, stream, &less, out, err);
}

/* A slice pitch of 0 follows the row's bytes, not the row's pitch. */
static gm_rect liar_slices(const gm_rect *rect) {
  gm_rect wrong = *rect;
  if (!wrong.src_slice_pitch) wrong.src_slice_pitch = wrong.row_bytes * wrong.rows;
  if (!wrong.dst_slice_pitch) wrong.dst_slice_pitch = wrong.row_bytes * wrong.rows;
  return wrong;
}

gm_status liar_slices_to_device(void *device, void *stream, const gm_memory *dst, const void *src, const gm_rect *rect,
                                gm_backend_point *out, gm_error *err) {
  const gm_rect wrong = liar_slices(rect);
  return lazy_ops.rect_to_device(device, stream, dst, src, &wrong, out, err);
}

gm_status liar_slices_to_host(void *device, void *stream, const gm_memory *src, void *dst, const gm_rect *rect,
                              gm_backend_point *out, gm_error *err) {
  const gm_rect wrong = liar_slices(rect);
  return lazy_ops.rect_to_host(device, stream, src, dst, &wrong, out, err);
}

gm_status liar_slices_copy(void *device, void *stream, const gm_memory *dst, const gm_memory *src, const gm_rect *rect,
                           gm_backend_point *out, gm_error *err) {
  const gm_rect wrong = liar_slices(rect);
  return lazy_ops.rect_copy(device, stream, dst, src, &wrong, out, err);
}

/* Items that are neighbours in the target become one copy, wherever they come from. */
static bool liar_neighbours(const gm_copy_item *one, const gm_copy_item *next) {
  return one->src == next->src && one->dst == next->dst && one->dst_offset + one->bytes == next->dst_offset &&
         one->src_offset + one->bytes + next->bytes <= one->src->bytes;
}

gm_status liar_many_merges(void *device, void *stream, const gm_copy_item *items, uint32_t count, gm_backend_point *out,
                           gm_error *err) {
  gm_status status = GM_OK;
  for (uint32_t i = 0; i < count && status == GM_OK;) {
    gm_copy_item all = items[i++];
    while (i < count && liar_neighbours(&all, &items[i])) all.bytes += items[i++].bytes;
    status = lazy_ops.copy(device, stream, &all, out, err);
  }
  return status;
}

/* The number of items is kept in eight bits. */
gm_status liar_many_of_256(void *device, void *stream, const gm_copy_item *items, uint32_t count, gm_backend_point *out,
                           gm_error *err) {
  return lazy_ops.copy_many(device, stream, items, count ? (count - 1) % 256 + 1 : 0, out, err);
}

/* A group of 64 threads takes an item, and a thread only one word of it. */
gm_status liar_many_one_word_each(void *device, void *stream, const gm_copy_item *items, uint32_t count,
                                  gm_backend_point *out, gm_error *err) {
  gm_copy_item *less = calloc(count ? count : 1, sizeof *less);
  if (!less) return lazy_fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "copy_many", "no host memory");
  for (uint32_t i = 0; i < count; i++) {
    less[i] = items[i];
    if (less[i].bytes % 4 == 0 && less[i].bytes > LIAR_GROUP_BYTES) less[i].bytes = LIAR_GROUP_BYTES;
  }
  const gm_status status = lazy_ops.copy_many(device, stream, less, count, out, err);
  free(less);
  return status;
}

/* A kernel does small items, and does not wait for the copies before it. */
gm_status liar_many_overtakes(void *device, void *stream, const gm_copy_item *items, uint32_t count,
                              gm_backend_point *out, gm_error *err) {
  lazy_device *owner = device;
  pthread_mutex_lock(&owner->lock);
  for (uint32_t i = 0; i < count; i++) {
    memmove(liar_at(items[i].dst) + items[i].dst_offset, liar_at(items[i].src) + items[i].src_offset, items[i].bytes);
  }
  pthread_mutex_unlock(&owner->lock);
  return lazy_ops.copy_many(device, stream, items, 0, out, err);
}

/* Without a point a small copy is over when its bytes lie in a buffer on the way. The buffers stay. */
typedef struct liar_buffer {
  struct liar_buffer *next;
  unsigned char bytes[LIAR_SMALL];
} liar_buffer;

static _Atomic(liar_buffer *) liar_buffers;

gm_status liar_arrives_late(void *device, void *stream, const gm_memory *dst, uint64_t offset, const void *src,
                            uint64_t bytes, gm_backend_point *out, gm_error *err) {
  gm_backend_point unused;
  liar_buffer *buffer = out || bytes > LIAR_SMALL ? NULL : malloc(sizeof *buffer);
  if (!buffer) return lazy_ops.copy_to_device(device, stream, dst, offset, src, bytes, out, err);
  memcpy(buffer->bytes, src, bytes);
  buffer->next = liar_buffers;
  while (!atomic_compare_exchange_weak(&liar_buffers, &buffer->next, buffer)) {}
  return lazy_ops.copy_to_device(device, stream, dst, offset, buffer->bytes, bytes, &unused, err);
}

/* ---- queues ---- */

/* The copy that finds the ring full runs at once, before those in the ring. */
gm_status liar_jumps(void *device, void *stream, const gm_copy_item *item, gm_backend_point *out, gm_error *err) {
  lazy_device *owner = device;
  pthread_mutex_lock(&owner->lock);
  const bool full = ((lazy_stream *)stream)->count >= LIAR_RING;
  if (full) memcpy(liar_at(item->dst) + item->dst_offset, liar_at(item->src) + item->src_offset, item->bytes);
  pthread_mutex_unlock(&owner->lock);
  if (!full) return lazy_ops.copy(device, stream, item, out, err);
  if (out) *out = (gm_backend_point){0};
  return GM_OK;
}

/* Fills run on another engine, which knows nothing of the stream's waits. */
gm_status liar_fill_ignores_waits(void *device, void *stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                                  const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err) {
  lazy_device *owner = device;
  const lazy_stream *queue = stream;
  pthread_mutex_lock(&owner->lock);
  bool waits = queue->count > 0;
  for (uint32_t i = 0; i < queue->count; i++) {
    const lazy_job *job = &queue->jobs[(queue->first + i) % queue->room];
    waits = waits && !job->src && !job->pattern_bytes;
  }
  for (uint64_t i = 0; waits && i < bytes; i++) {
    liar_at(dst)[offset + i] = ((const unsigned char *)pattern)[i % pattern_bytes];
  }
  pthread_mutex_unlock(&owner->lock);
  if (!waits) return lazy_ops.fill(device, stream, dst, offset, bytes, pattern, pattern_bytes, out, err);
  if (out) *out = (gm_backend_point){0};
  return GM_OK;
}

void liar_close_drops(void *device, void *stream, gm_close_mode mode) {
  lazy_device *owner = device;
  lazy_stream *queue = stream;
  if (mode == GM_CLOSE_NORMAL) {
    pthread_mutex_lock(&owner->lock);
    queue->done = queue->submitted;
    queue->count = 0;
    pthread_mutex_unlock(&owner->lock);
  }
  lazy_ops.stream_close(device, stream, mode);
}
