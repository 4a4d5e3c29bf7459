#include "core/base/error.h"
#include "core/buffer/hold.h"
#include "core/buffer/move.h"
#include "gm/relocation.h"

/* Invariant: a buffer that is `asleep` is in host memory, with its bytes or with none. Whatever moves it elsewhere
 * wakes it. */

static gm_status sleep_one(gm_buffer *buffer, bool keep_contents, gm_stream *stream, gm_error *err) {
  static const char op[] = "gm_pool_sleep";
  gm_status status = GM_OK;
  if (buffer->at.location != GM_LOCATION_DEVICE) return GM_OK;
  status = gm__buffer_follow(buffer, stream, err);
  if (status) return status;
  if (keep_contents) {
    status = gm__buffer_go(buffer, GM_LOCATION_HOST, stream, op, err);
  } else {
    gm__place nowhere = {.location = GM_LOCATION_HOST};
    status = gm__buffer_move_in(buffer, &nowhere, stream, op, err);
  }
  buffer->asleep = !status;
  return status;
}

static gm_status wake_one(gm_buffer *buffer, gm_stream *stream, gm_error *err) {
  return buffer->asleep ? gm__buffer_go(buffer, GM_LOCATION_DEVICE, stream, "gm_pool_wake", err) : GM_OK;
}

static gm_status wake_all(gm_pool *pool, gm_stream *stream, gm_error *err) {
  bool held = false;
  gm_status first = GM_OK;
  gm_buffer *buffer = NULL;
  while ((buffer = gm__buffer_walk(pool, buffer, true, &held))) {
    const gm_status status = wake_one(buffer, stream, first ? NULL : err);
    if (!first) first = status;
  }
  return first;
}

static gm_status sleep_busy(const gm_pool *pool, gm_error *err) {
  return gm__fail(err, GM_ERR_BUSY, 0, "gm_pool_sleep", "somebody has locked a buffer of pool \"%s\"",
                  pool->heap.provider.name);
}

/* Looks before any contents are dropped. */
static gm_status sleep_check_locks(gm_pool *pool, gm_error *err) {
  bool locked = false;
  gm__mutex_lock(&pool->buffers.lock);
  for (const gm_buffer *buffer = pool->buffers.first; buffer; buffer = buffer->next) locked |= buffer->locks > 0;
  gm__mutex_unlock(&pool->buffers.lock);
  return locked ? sleep_busy(pool, err) : GM_OK;
}

static gm_status sleep_all(gm_pool *pool, bool keep_contents, gm_stream *stream, gm_error *err) {
  bool held = false;
  gm_status status = GM_OK;
  gm_buffer *buffer = NULL;
  while (!status && (buffer = gm__buffer_walk(pool, buffer, false, &held))) {
    status = sleep_one(buffer, keep_contents, stream, err);
  }
  if (buffer) gm__buffer_settle(buffer);
  return held ? sleep_busy(pool, err) : status;
}

static gm_status sleep_check(const gm_pool *pool, const gm_stream *stream, const char *op, gm_error *err) {
  const gm_status status = gm__pool_alive(pool, op, err);
  if (status || !stream || gm_stream_device(stream) == pool->device) return status;
  return gm__bad_argument(err, op, "`stream` is another device's");
}

gm_status gm_pool_sleep(gm_pool *pool, bool keep_contents, gm_stream *stream, uint64_t *out_bytes, gm_error *err) {
  gm_status status = sleep_check(pool, stream, "gm_pool_sleep", err);
  if (!status) status = sleep_check_locks(pool, err);
  if (status) return status;
  status = sleep_all(pool, keep_contents, stream, err);
  if (status) {
    wake_all(pool, stream, NULL);
    return status;
  }
  const uint64_t bytes = gm__heap_trim(&pool->heap, 0, UINT64_MAX);
  if (out_bytes) *out_bytes = bytes;
  return GM_OK;
}

gm_status gm_pool_wake(gm_pool *pool, gm_stream *stream, gm_error *err) {
  const gm_status status = sleep_check(pool, stream, "gm_pool_wake", err);
  return status ? status : wake_all(pool, stream, err);
}
