#include "core/buffer/demote.h"

#include "core/buffer/heat.h"
#include "core/buffer/hold.h"
#include "core/buffer/move.h"
#include "core/device/evictor.h"

enum { DEMOTE_FAILURES_MOST = 4 }; /* then the host has no room, or the device is broken */

static void demote_note(gm_pool *pool, gm_buffer *buffer) {
  gm__mutex_lock(&pool->buffers.lock);
  gm__heat_demoted(buffer);
  gm__mutex_unlock(&pool->buffers.lock);
}

/* Pinned memory is of the pool, too, so it is no way out where the pool's own bound is short. */
static gm_status demote_one(gm_buffer *buffer, bool pin) {
  const bool pinned = pin && buffer->may_pin && !gm__buffer_go(buffer, GM_LOCATION_PINNED, NULL, "gm_alloc", NULL);
  return pinned ? GM_OK : gm__buffer_go(buffer, GM_LOCATION_HOST, NULL, "gm_alloc", NULL);
}

uint64_t gm__demote(gm_pool *pool, uint64_t bytes) {
  const bool pin = !gm__evict_run_is_of_pool(pool->device);
  const uint64_t idle = gm__heap_pooled(&pool->heap);
  gm__buffer_search search = {.pool = pool, .looks = SIZE_MAX};
  uint64_t gone = 0;
  gm__buffer_search_begin(&search);
  for (int failures = 0; gone < bytes && failures < DEMOTE_FAILURES_MOST;) {
    gm_buffer *buffer = gm__buffer_search_next(&search);
    if (!buffer) break;
    const gm_status status = demote_one(buffer, pin);
    if (status) failures++;
    if (!status) {
      gone += buffer->bytes;
      demote_note(pool, buffer);
    }
    gm__buffer_settle(buffer);
  }
  gm__buffer_search_end(&search);
  /* Memory that was idle before serves the pool's next requests. */
  if (gone && !pool->heap.provider.no_trim) gm__heap_trim(&pool->heap, idle, UINT64_MAX);
  return gone;
}
