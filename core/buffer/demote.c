#include "core/buffer/demote.h"

#include "core/base/clock.h"
#include "core/buffer/heat.h"
#include "core/buffer/hold.h"
#include "core/buffer/move.h"
#include "core/device/evictor.h"

enum { DEMOTE_FAILURES_MOST = 4 }; /* then the host has no room, or the device is broken */

static bool demote_is_before(const gm_buffer *one, const gm_buffer *other, uint64_t now) {
  if (one->persistent != other->persistent) return !one->persistent;
  return gm__heat_at(one, now) < gm__heat_at(other, now);
}

static bool demote_may(const gm_buffer *buffer, const gm__buffer_wanted *wanted) {
  (void)wanted;
  return buffer->evictable && buffer->at.location == GM_LOCATION_DEVICE;
}

/* The next buffer to leave, seized. NULL: there is none. */
static gm_buffer *demote_choose(gm_pool *pool) {
  const gm__buffer_wanted wanted = {demote_may, demote_is_before, .now = gm__now_coarse_ns()};
  return gm__buffer_choose(pool, &wanted);
}

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
  uint64_t gone = 0;
  for (int failures = 0; gone < bytes && failures < DEMOTE_FAILURES_MOST;) {
    gm_buffer *buffer = demote_choose(pool);
    if (!buffer) break;
    const gm_status status = demote_one(buffer, pin);
    if (status) failures++;
    if (!status) {
      gone += buffer->bytes;
      demote_note(pool, buffer);
    }
    gm__buffer_settle(buffer);
  }
  if (gone) gm__heap_trim(&pool->heap, idle, UINT64_MAX); /* what was idle before serves the pool's next requests */
  return gone;
}
