#include "core/manage/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/arena/arena.h"
#include "core/arena/observe.h"
#include "core/base/error.h"
#include "core/manage/lifecycle.h"
#include "core/provider/walk.h"

/* Invariants. `recorder` changes under the gate and the provider lock. An arena that is made later sees it. The thread
 * that begins a recording gives each other arena its events, one after the other, with the blocks that are live at that
 * moment. So every live block has one allocation among the events of its arena. Before a recorder is finished each
 * arena was locked once after its events were taken away, so no thread writes any more. */

_Static_assert(GM__ARENA_SET_ARENAS + 1 <= GM__RECORDER_BUFFERS, "an event buffer for each arena");

/* ---- marks ---- */

void gm__record_mark_in(gm_pool *pool, const char *label) {
  gm__event_buffer *events = gm__recorder_buffer(pool->heap.observers.recorder, GM__RECORD_DEDICATED);
  if (events) gm__event_buffer_mark(events, label, strlen(label));
}

gm_status gm__record_mark(gm_pool *pool, const char *label) {
  gm__mutex_lock(&pool->heap.provider.lock);
  const bool writes = gm__recorder_writes(pool->heap.observers.recorder);
  if (writes) gm__record_mark_in(pool, label);
  gm__mutex_unlock(&pool->heap.provider.lock);
  return writes ? GM_OK : GM_ERR_NOT_FOUND;
}

void gm__record_tracker_mark(gm_pool *pool, uint64_t mark) {
  char label[32];
  snprintf(label, sizeof label, "mark %" PRIu64, mark);
  gm__record_mark(pool, label);
}

/* ---- begin ---- */

/* From now on dedicated blocks and new arenas write events. A block does so once the walk has passed its number. */
static void record_begin_dedicated(gm_pool *pool, gm__recorder *recorder) {
  gm__dedicated *dedicated = &pool->heap.dedicated;
  uint32_t cursor = 0;
  gm__mutex_lock(&pool->heap.provider.lock);
  pool->heap.observers.recorder = recorder;
  dedicated->events_below = 0;
  for (gm__allocation *allocation; (allocation = gm__provider_walk(&pool->heap.provider, &cursor));) {
    dedicated->events_below = allocation->index + 1;
    if (!gm__allocation_is_out(allocation) || !gm__dedicated_events(dedicated, allocation)) continue;
    gm__dedicated_record(dedicated, allocation);
    recorder->already_alive++;
  }
  dedicated->events_below = UINT32_MAX;
  gm__mutex_unlock(&pool->heap.provider.lock);
}

static void record_begin_arenas(gm_pool *pool, gm__recorder *recorder) {
  for (gm__arena *arena = NULL; (arena = gm__arena_next(&pool->heap.arenas, arena));) {
    gm__event_buffer *events = arena->events ? NULL : gm__recorder_buffer(recorder, arena->number + 1);
    if (events) recorder->already_alive += gm__observe_record(arena, events);
  }
}

gm__recorder *gm__record_stop(gm_pool *pool) {
  gm__mutex_lock(&pool->heap.provider.lock);
  gm__recorder *recorder = pool->heap.observers.recorder;
  pool->heap.observers.recorder = NULL;
  gm__mutex_unlock(&pool->heap.provider.lock);
  for (gm__arena *arena = NULL; (arena = gm__arena_next(&pool->heap.arenas, arena));) gm__observe_unrecord(arena);
  return recorder;
}

void gm__record_start(gm_pool *pool, gm__recorder *recorder) {
  const bool writes = gm__recorder_writes(recorder);
  gm__event_buffer *events = writes ? gm__recorder_buffer(recorder, GM__RECORD_DEDICATED) : NULL;
  if (events) gm__event_buffer_mark(events, "start", strlen("start"));
  record_begin_dedicated(pool, recorder);
  record_begin_arenas(pool, recorder);
  if (events) gm__record_mark(pool, "recording");
}

gm_status gm__record_check_idle(const gm_pool *pool, const char *op, gm_error *err) {
  const gm__recorder *recorder = pool->heap.observers.recorder;
  if (!recorder) return GM_OK;
  return gm__fail(err, GM_ERR_BUSY, op, "pool \"%s\" is being %s already", pool->heap.provider.name,
                  recorder->sink ? "profiled" : "recorded");
}
