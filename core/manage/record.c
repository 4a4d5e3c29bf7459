#include "core/manage/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/arena/arena.h"
#include "core/arena/observe.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/manage/lifecycle.h"
#include "core/provider/walk.h"
#include "core/trace/recording.h"
#include "gm/record.h"
#include "gm/version.h"

/* Invariants. `recorder` changes under the gate and the provider lock. An arena that is made later sees it. The thread
 * that begins a recording gives each other arena its events, one after the other, with the blocks that are live at that
 * moment. So every live block has one allocation among the events of its arena. Before a recorder is finished each
 * arena was locked once after its events were taken away, so no thread writes any more. */

_Static_assert(GM__ARENA_SET_ARENAS + 1 <= GM__RECORDER_BUFFERS, "an event buffer for each arena");

/* ---- marks ---- */

static gm_status record_mark(gm_pool *pool, const char *label) {
  gm_status status = GM_ERR_NOT_FOUND;
  gm__mutex_lock(&pool->heap.provider.lock);
  if (gm__recorder_writes(pool->heap.observers.recorder)) {
    gm__event_buffer *events = gm__recorder_buffer(pool->heap.observers.recorder, GM__RECORD_DEDICATED);
    if (events) gm__event_buffer_mark(events, label, strlen(label));
    status = GM_OK; /* the end of the recording tells if there is none */
  }
  gm__mutex_unlock(&pool->heap.provider.lock);
  return status;
}

void gm__record_tracker_mark(gm_pool *pool, uint64_t mark) {
  char label[32];
  snprintf(label, sizeof label, "mark %" PRIu64, mark);
  record_mark(pool, label);
}

static gm_status record_none(const gm_pool *pool, const char *op, gm_error *err) {
  return gm__fail(err, GM_ERR_NOT_FOUND, 0, op, "pool \"%s\" is not being recorded", pool->heap.provider.name);
}

gm_status gm_pool_record_mark(gm_pool *pool, const char *label, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pool_record_mark";
  gm_status status = gm__pool_alive(pool, op, err);
  if (status) return status;
  const size_t length = label ? strnlen(label, GM__EVENT_LABEL_MOST + 1) : 0;
  if (length == 0 || length > GM__EVENT_LABEL_MOST) {
    return gm__bad_argument(err, op, "`label` must have 1 to %d bytes", GM__EVENT_LABEL_MOST);
  }
  return record_mark(pool, label) ? record_none(pool, op, err) : GM_OK;
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
  record_begin_dedicated(pool, recorder);
  record_begin_arenas(pool, recorder);
}

gm_status gm__record_check_idle(const gm_pool *pool, const char *op, gm_error *err) {
  const gm__recorder *recorder = pool->heap.observers.recorder;
  if (!recorder) return GM_OK;
  return gm__fail(err, GM_ERR_BUSY, 0, op, "pool \"%s\" is being %s already", pool->heap.provider.name,
                  recorder->sink ? "profiled" : "recorded");
}

static gm_status record_begin(gm_pool *pool, const char *path, gm_error *err) {
  gm__recorder *recorder = NULL;
  const gm_status idle = gm__record_check_idle(pool, "gm_pool_record_begin", err);
  if (idle) return idle;
  gm_status status = gm__recorder_open(gm__context_services(pool->device->ctx), path, &recorder, err);
  if (status) return status;
  gm__event_buffer *events = gm__recorder_buffer(recorder, GM__RECORD_DEDICATED);
  if (events) gm__event_buffer_mark(events, "start", strlen("start"));
  gm__record_start(pool, recorder);
  record_mark(pool, "recording");
  if (!gm__recorder_has_failed(recorder, err)) return GM_OK;
  status = recorder->failure.status;
  gm__recorder_close(gm__record_stop(pool), false);
  return status;
}

gm_status gm_pool_record_begin(gm_pool *pool, const char *path, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pool_record_begin";
  gm_status status = gm__pool_alive(pool, op, err);
  if (status) return status;
  if (!path || !path[0]) return gm__bad_argument(err, op, "`path` is %s", path ? "empty" : "NULL");
  gm__mutex_lock(&pool->gate);
  status = record_begin(pool, path, err);
  gm__mutex_unlock(&pool->gate);
  return status;
}

/* ---- end ---- */

static gm_status record_end(gm_pool *pool, gm_recording *out, gm_error *err) {
  char comment[160];
  if (!gm__recorder_writes(pool->heap.observers.recorder)) return record_none(pool, "gm_pool_record_end", err);
  gm__recorder *recorder = gm__record_stop(pool);
  snprintf(comment, sizeof comment, "# recorded by gm %s from pool \"%s\" (%s) on %s", gm_version_string(),
           pool->heap.provider.name, pool->heap.strategy == GM_STRATEGY_BUCKET ? "bucket" : "best_fit",
           pool->device->info.name);
  gm_status status = gm__recorder_finish(recorder, comment, out, err);
  gm__recorder_close(recorder, false);
  return status;
}

gm_status gm_pool_record_end(gm_pool *pool, gm_recording *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pool_record_end";
  gm_status status = gm__pool_alive(pool, op, err);
  if (!status && out) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status) return status;
  gm_recording made = {.struct_size = sizeof made};
  gm__mutex_lock(&pool->gate);
  status = record_end(pool, &made, err);
  gm__mutex_unlock(&pool->gate);
  if (!status && out) gm__sized_out(out, &made, sizeof made);
  return status;
}
