/* Invariants: a run begins and ends with no block handed out, so every run does the same. Only gm_alloc and gm_free are
 * inside the time that is measured. With touching, each event is timed alone, so that the writing is not measured. */
#include "tools/gmem/replay/replay_worker.h"

#include <stdio.h>
#include <time.h>

#include "gm/copy.h"
#include "tools/gmem/output/progress.h"

static uint64_t replay_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

gm_status replay_fail(gm_error *err, gm_status status, const char *message) {
  err->status = status;
  snprintf(err->message, sizeof err->message, "%s", message);
  return status;
}

/* ---- one event ---- */

static gm_status replay_explain(replay_worker *worker, const gm_request *request, gm_acquire answer) {
  gm_explanation why = {.struct_size = sizeof why};
  if (gm_explain(worker->pool, request, &why, &worker->error) != GM_OK) return worker->error.status;
  bool failed = answer == GM_ACQUIRE_FAILED;
  const char *text = failed && why.last_failure.message[0] ? why.last_failure.message : why.text;
  return replay_fail(&worker->error, failed ? GM_ERR_DRIVER : GM_ERR_INVALID_ARGUMENT, text);
}

static gm_status replay_alloc(replay_worker *worker, const replay_event *event) {
  gm_request request = {.bytes = event->bytes, .flags = GM_INSERT_WAIT, .stream = worker->streams[event->stream]};
  gm_block *block = &worker->blocks[event->slot];
  gm_acquire answer = gm_alloc(worker->pool, &request, block);
  if (answer <= GM_ACQUIRE_FRESH) return GM_OK;
  block->bytes = 0;
  if (answer != GM_ACQUIRE_EXHAUSTED && answer != GM_ACQUIRE_OVER_LIMIT) {
    return replay_explain(worker, &request, answer);
  }
  worker->failed++;
  return GM_OK;
}

static gm_status replay_free(replay_worker *worker, const replay_event *event) {
  gm_block *block = &worker->blocks[event->slot];
  if (block->bytes == 0) return GM_OK; /* it found no memory */
  gm_status status = gm_free(worker->pool, block, worker->streams[event->stream]);
  block->bytes = 0;
  return status == GM_OK ? GM_OK : replay_fail(&worker->error, status, "a block could not be given back");
}

static gm_status replay_touch(replay_worker *worker, const replay_event *event) {
  static const uint64_t pattern = UINT64_C(0x676d676d676d676d);
  const gm_block *block = &worker->blocks[event->slot];
  if (event->is_free || block->bytes == 0) return GM_OK;
  return gm_block_fill(worker->pool, block, 0, event->bytes, &pattern, sizeof pattern, worker->streams[event->stream],
                       NULL, &worker->error);
}

static gm_status replay_event_run(replay_worker *worker, const replay_event *event) {
  return event->is_free ? replay_free(worker, event) : replay_alloc(worker, event);
}

static void replay_tell(const replay_worker *worker, size_t event) {
  if (worker->to_tell) progress_show_events("replaying", worker->told + event, worker->to_tell);
}

/* ---- one run ---- */

/* Events between two looks at the bar: few enough for a slow device, and so many that a look costs nothing beside. */
enum { REPLAY_LOOK = 4096 };

static gm_status replay_untimed(replay_worker *worker) {
  const replay_events *events = worker->events;
  gm_status status = GM_OK;
  worker->begin_ns = replay_now();
  for (size_t i = 0; i < events->count && status == GM_OK; i++) {
    status = replay_event_run(worker, &events->list[i]);
    if (i % REPLAY_LOOK == 0) replay_tell(worker, i);
  }
  worker->end_ns = replay_now();
  return status;
}

static gm_status replay_timed(replay_worker *worker) {
  const replay_events *events = worker->events;
  gm_status status = GM_OK;
  uint64_t sum = 0;
  for (size_t i = 0; i < events->count && status == GM_OK; i++) {
    uint64_t before = replay_now();
    status = replay_event_run(worker, &events->list[i]);
    uint64_t took = replay_now() - before;
    sum += took;
    if (worker->times_ns) worker->times_ns[i] = took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
    if (worker->touch && status == GM_OK) status = replay_touch(worker, &events->list[i]);
    replay_tell(worker, i);
  }
  worker->begin_ns = 0;
  worker->end_ns = sum;
  return status;
}

/* Give back what the trace left alive. */
static void replay_clean(replay_worker *worker) {
  for (uint32_t slot = 0; slot < worker->events->allocs; slot++) {
    gm_block *block = &worker->blocks[slot];
    if (block->bytes == 0) continue;
    gm_status status = gm_free(worker->pool, block, worker->streams[0]);
    block->bytes = 0;
    if (status != GM_OK && worker->status == GM_OK) {
      worker->status = replay_fail(&worker->error, status, "a block could not be given back");
    }
  }
}

void replay_worker_run(replay_worker *worker) {
  worker->failed = 0;
  worker->status = worker->times_ns || worker->touch ? replay_timed(worker) : replay_untimed(worker);
  if (worker->holes) gm_pool_fragmentation(worker->pool, worker->holes, NULL); /* a look changes what comes after */
  replay_clean(worker);
}
