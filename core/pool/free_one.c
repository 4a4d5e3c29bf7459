#include "core/pool/free_one.h"

#include "core/base/cancel.h"
#include "core/heap/live.h"

gm_status gm__free_one(gm_pool *pool, const gm_block *block, gm_stream *stream) {
  if (!pool->guard) return gm__heap_free(&pool->heap, block, stream);
  GM__UNCANCELLED(); /* the guard writes to the block */
  return gm__guard_free(pool->guard, block, stream);
}

gm_status gm__use_on_one(gm_pool *pool, const gm_block *block, gm_stream *stream) {
  gm__live live;
  if (!gm__live_open(&pool->heap, block, &live)) return GM_ERR_INVALID_ARGUMENT;
  gm_status status = GM_OK;
  const int slot = gm__live_free_slot(&live, stream);
  if (slot == GM__ORDER_HOST || !gm__live_make_cold(&live)) {
    status = GM_ERR_OUT_OF_HOST_MEMORY;
  } else {
    gm__order_note_use(live.order, &live.cold->use, slot);
    gm__live_note_use(&live);
  }
  gm__live_close(&live);
  return status;
}

/* The host's order keeps what was pending on the block before. */
gm_status gm__free_waiting(gm_pool *pool, const gm_block *block, gm_stream *stream,
                           gm_status (*free_block)(gm_pool *pool, const gm_block *block, gm_stream *stream)) {
  const gm_status status = free_block(pool, block, stream);
  const bool unnoted = status == GM_ERR_OUT_OF_HOST_MEMORY && stream && !gm__stream_captured(stream);
  return unnoted && gm__order_drain(stream, "gm_free", NULL) == GM_OK ? free_block(pool, block, NULL) : status;
}

/* A captured stream was given no work. */
gm_status gm__free_unused(gm_pool *pool, const gm_block *block, gm_stream *stream,
                          gm_status (*free_block)(gm_pool *pool, const gm_block *block, gm_stream *stream)) {
  return gm__free_waiting(pool, block, gm__stream_captured(stream) ? NULL : stream, free_block);
}
