#include "core/pool/free.h"

#include "core/arena/arena_alloc.h"
#include "core/heap/live.h"
#include "core/pool/free_one.h"
#include "core/pool/spans.h"

/* Is the stream one of the pool's device? A closed stream becomes NULL, because its work is done. */
static bool free_stream_ok(const gm_pool *pool, gm_stream **stream) {
  if (*stream && gm__stream_is_closed(*stream)) *stream = NULL;
  return !*stream || (*stream)->device == pool->device;
}

gm_status gm__block_free(gm_pool *pool, const gm_block *block, gm_stream *stream) {
  if (!gm__pool_lives(pool) || !free_stream_ok(pool, &stream)) return GM_ERR_INVALID_ARGUMENT;
  if (gm__pool_forked(pool)) return GM_ERR_FORKED;
  const gm_status status =
      gm__spans_is(block) ? gm__spans_free(pool, block, stream) : gm__free_one(pool, block, stream);
  gm__keep_hold(&pool->heap, stream, true);
  return status;
}

gm_status gm__block_free_unused(gm_pool *pool, const gm_block *block, gm_stream *stream) {
  return gm__free_unused(pool, block, stream, gm__block_free);
}

gm_status gm__block_free_ptr(gm_pool *pool, const void *pointer, uint64_t bytes_or_0, gm_stream *stream) {
  gm__live live;
  if (!pointer) return GM_OK;
  if (!gm__pool_lives(pool) || !free_stream_ok(pool, &stream)) return GM_ERR_INVALID_ARGUMENT;
  if (gm__pool_forked(pool)) return GM_ERR_FORKED;
  if (!pool->guard) {
    const gm_status status = gm__heap_free_at(&pool->heap, (uintptr_t)pointer, bytes_or_0, stream);
    gm__keep_hold(&pool->heap, stream, true);
    return status;
  }
  if (!gm__live_at(&pool->heap, (uintptr_t)pointer, &live)) return GM_ERR_INVALID_ARGUMENT;
  gm__live_close(&live);
  if (live.block.address != (uintptr_t)pointer || bytes_or_0 > live.block.bytes) return GM_ERR_INVALID_ARGUMENT;
  return gm__block_free(pool, &live.block, stream);
}

gm_status gm_use_on(gm_pool *pool, const gm_block *block, gm_stream *stream) {
  if (!gm__pool_lives(pool) || !block || !stream || stream->device != pool->device) return GM_ERR_INVALID_ARGUMENT;
  if (gm__pool_forked(pool)) return GM_ERR_FORKED;
  gm_block_span span;
  gm_status status = GM_ERR_INVALID_ARGUMENT;
  for (uint32_t i = 0; (status == GM_OK || i == 0) && gm__spans_next(pool, block, &i, &span);) {
    status = gm__use_on_one(pool, &span.block, stream);
  }
  return status;
}

gm_status gm_use_on_ptr(gm_pool *pool, const void *pointer, gm_stream *stream) {
  gm_pointer_info info = {.struct_size = sizeof info};
  gm_block block;
  if (!stream || gm__stream_is_closed(stream)) return GM_ERR_INVALID_ARGUMENT;
  if (!pool) {
    const gm_status found = gm_pointer_find(stream->device, pointer, &info);
    pool = info.pool;
    block = info.block;
    if (found != GM_OK) return found == GM_ERR_NOT_FOUND ? GM_ERR_INVALID_ARGUMENT : found;
  } else {
    const gm_status found = gm_block_of(pool, pointer, &block);
    if (found != GM_OK) return found == GM_ERR_NOT_FOUND ? GM_ERR_INVALID_ARGUMENT : found;
  }
  return gm_use_on(pool, &block, stream);
}

static bool free_is_live(gm_pool *pool, const gm_block *block) {
  gm_block_span span;
  gm__live live;
  uint32_t first = 0;
  if (!gm__spans_next(pool, block, &first, &span) || !gm__live_open(&pool->heap, &span.block, &live)) return false;
  gm__live_close(&live);
  return true;
}

/* The device's lock keeps the streams open. Noting a use takes only locks that stand below it, and asks no driver. */
gm_status gm_use_on_all(gm_pool *pool, const gm_block *block) {
  if (!gm__pool_lives(pool) || !block) return GM_ERR_INVALID_ARGUMENT;
  if (gm__pool_forked(pool)) return GM_ERR_FORKED;
  gm_status status = free_is_live(pool, block) ? GM_OK : GM_ERR_INVALID_ARGUMENT;
  gm__mutex_lock(&pool->device->lock);
  for (gm_stream *stream = pool->device->streams; stream && status == GM_OK; stream = stream->next) {
    status = gm_use_on(pool, block, stream);
  }
  gm__mutex_unlock(&pool->device->lock);
  return status;
}

gm_point gm_block_point(gm_pool *pool, const gm_block *block) {
  gm_point point = {0};
  gm__live live;
  if (!gm__pool_lives(pool) || !block || gm__pool_forked(pool) || !gm__live_open(&pool->heap, block, &live))
    return point;
  if (live.cold && live.cold->use.has_point) {
    const gm__last_use *use = &live.cold->use;
    point = (gm_point){live.order->slots[use->point_slot].stream->id, use->point.handle, use->point.value};
  }
  gm__live_close(&live);
  return point;
}
