#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/buffer/hold.h"
#include "core/buffer/move.h"
#include "core/device/evictor.h"
#include "core/heap/heap_sleep.h"
#include "gm/relocation.h"

/* Invariant: a buffer that is `asleep` is in host memory, with its bytes or with none. Whatever moves it elsewhere
 * wakes it.
 *
 * A pool that sleeps as a whole has no memory behind its pages, and its buffers there are not moved. All of them are
 * seized while that changes, so no call is in the midst of their bytes. */

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

/* No evictor is asked, because one could wait for the buffer that is seized. */
static gm_status wake_all(gm_pool *pool, gm_stream *stream, gm_error *err) {
  bool held = false;
  gm_status first = GM_OK;
  gm_buffer *buffer = NULL;
  gm__evict_run none;
  const bool begun = gm__evict_run_begin(&none, pool->device);
  while ((buffer = gm__buffer_walk(pool, buffer, true, &held))) {
    const gm_status status = wake_one(buffer, stream, first ? NULL : err);
    if (!first) first = status;
  }
  if (begun) gm__evict_run_end(&none);
  return first;
}

static gm_status sleep_busy(const gm_pool *pool, const char *op, gm_error *err) {
  return gm__fail(err, GM_ERR_BUSY, op, "somebody has locked a buffer of pool \"%s\"", pool->heap.provider.name);
}

/* Looks before any contents are dropped. */
static gm_status sleep_check_locks(gm_pool *pool, gm_error *err) {
  bool locked = false;
  gm__mutex_lock(&pool->buffers.lock);
  for (const gm_buffer *buffer = pool->buffers.first; buffer; buffer = buffer->next) locked |= buffer->locks > 0;
  gm__mutex_unlock(&pool->buffers.lock);
  return locked ? sleep_busy(pool, "gm_pool_sleep", err) : GM_OK;
}

static gm_status sleep_all(gm_pool *pool, bool keep_contents, gm_stream *stream, gm_error *err) {
  bool held = false;
  gm_status status = GM_OK;
  gm_buffer *buffer = NULL;
  while (!status && (buffer = gm__buffer_walk(pool, buffer, false, &held))) {
    status = sleep_one(buffer, keep_contents, stream, err);
  }
  if (buffer) gm__buffer_settle(buffer);
  return held ? sleep_busy(pool, "gm_pool_sleep", err) : status;
}

static gm_status sleep_check(const gm_pool *pool, const gm_stream *stream, const char *op, gm_error *err) {
  const gm_status status = gm__pool_alive(pool, op, err);
  return status ? status : gm__buffer_check_stream(pool, stream, op, "stream", err);
}

gm_status gm_pool_sleep(gm_pool *pool, bool keep_contents, gm_stream *stream, uint64_t *out_bytes, gm_error *err) {
  GM__UNCANCELLED();
  gm_status status = sleep_check(pool, stream, "gm_pool_sleep", err);
  const bool whole = !status && gm__pages_are_asleep(&pool->heap.provider.pages);
  if (whole && out_bytes) *out_bytes = 0;
  if (!status && !whole) status = sleep_check_locks(pool, err);
  if (status || whole) return status;
  status = sleep_all(pool, keep_contents, stream, err);
  if (status) {
    wake_all(pool, stream, NULL);
    return status;
  }
  const uint64_t bytes = gm__heap_trim(&pool->heap, 0, UINT64_MAX);
  if (out_bytes) *out_bytes = bytes;
  return GM_OK;
}

/* ---- a whole pool ---- */

/* The buffers are seized. */
static gm_status sleep_follow(gm_buffer *first, gm_error *err) {
  gm_status status = GM_OK;
  for (gm_buffer *buffer = first; buffer && !status; buffer = buffer->next) {
    status = gm__buffer_follow(buffer, NULL, err);
  }
  return status;
}

static gm_status sleep_pages(gm_pool *pool, bool keep_contents, gm_stream *stream, gm__heap_sleep *sleep,
                             gm_error *err) {
  gm_buffer *first;
  const gm__sleep_params params = {
      .keep = keep_contents, .host_bytes = gm__place_host_bytes(pool->ctx), .stream = stream};
  if (!gm__buffer_seize_all(pool, &first)) return sleep_busy(pool, "gm_pool_sleep_whole", err);
  gm_status status = sleep_follow(first, err);
  if (!status) status = gm__heap_sleep_run(&pool->heap, &params, sleep, err);
  gm__buffer_settle_all(pool, first);
  return status;
}

gm_status gm_pool_sleep_whole(gm_pool *pool, bool keep_contents, gm_stream *stream, uint64_t *out_bytes,
                              gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pool_sleep_whole";
  gm__heap_sleep sleep;
  gm_status status = sleep_check(pool, stream, op, err);
  if (status) return status;
  if (pool->guard && gm__guard_writes(pool->guard)) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "pool \"%s\" has red zones or patterns in its memory",
                    pool->heap.provider.name);
  }
  status = gm__heap_sleep_begin(&pool->heap, stream, &sleep, err);
  if (!status && sleep.begun) {
    status = sleep_pages(pool, keep_contents, stream, &sleep, err);
    gm__heap_sleep_end(&pool->heap, &sleep);
  }
  if (!status && out_bytes) *out_bytes = sleep.bytes;
  return gm__error_of(op, status, err);
}

gm_status gm_pool_wake(gm_pool *pool, gm_stream *stream, gm_error *err) {
  GM__UNCANCELLED();
  gm_status status = sleep_check(pool, stream, "gm_pool_wake", err);
  if (!status) gm__pool_note_wake(pool);
  if (!status) status = gm__error_of("gm_pool_wake", gm__heap_wake(&pool->heap, stream, err), err);
  return status ? status : wake_all(pool, stream, err);
}
