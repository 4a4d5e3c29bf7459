#include "tools/gmem/replay/replay_run.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/gmem/output/progress.h"
#include "tools/gmem/replay/replay_worker.h"

typedef struct replay_crew {
  gm_pool *pool;
  const replay_events *events;
  const replay_params *params;
  replay_worker *workers;
  gm_stream **streams; /* thread by thread */
  uint64_t run;        /* how many have begun */
  uint32_t *times_ns;  /* of every worker's events, while they are timed */
} replay_crew;

/* ---- setting up ---- */

static uint64_t replay_stream_count(const replay_crew *crew) {
  return (uint64_t)crew->params->threads * crew->events->opened;
}

static gm_status replay_create_streams(replay_crew *crew, gm_error *err) {
  uint64_t count = replay_stream_count(crew);
  crew->streams = calloc(count, sizeof(gm_stream *));
  if (!crew->streams) return replay_fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "no host memory for the streams");
  gm_status status = GM_OK;
  for (uint64_t i = 0; i < count && status == GM_OK; i++) {
    status = gm_stream_create(gm_pool_device(crew->pool), &crew->streams[i], err);
  }
  return status;
}

static gm_status replay_create_workers(replay_crew *crew, gm_error *err) {
  crew->workers = calloc(crew->params->threads, sizeof *crew->workers);
  bool enough = crew->workers != NULL;
  for (uint32_t i = 0; i < crew->params->threads && enough; i++) {
    replay_worker *worker = &crew->workers[i];
    *worker = (replay_worker){.pool = crew->pool, .events = crew->events, .touch = crew->params->touch};
    worker->streams = crew->streams + (size_t)i * crew->events->opened;
    worker->blocks = calloc(crew->events->allocs + (size_t)1, sizeof *worker->blocks);
    enough = worker->blocks != NULL;
  }
  if (!enough) return replay_fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "no host memory for the blocks");
  /* The first one runs on this thread. */
  crew->workers[0].to_tell = (crew->params->runs + (uint64_t)crew->params->tail) * crew->events->count;
  return GM_OK;
}

static gm_status replay_time_events(replay_crew *crew, gm_error *err) {
  size_t count = crew->events->count;
  crew->times_ns = calloc(crew->params->threads, (count + 1) * sizeof *crew->times_ns);
  if (!crew->times_ns) return replay_fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "no host memory for the times");
  for (uint32_t i = 0; i < crew->params->threads; i++) crew->workers[i].times_ns = crew->times_ns + i * count;
  return GM_OK;
}

static gm_status replay_dismiss(replay_crew *crew, gm_status status, gm_error *err) {
  gm_error closing = {.status = GM_OK};
  for (uint64_t i = 0; crew->streams && i < replay_stream_count(crew); i++) {
    gm_stream_close(crew->streams[i], closing.status == GM_OK ? &closing : NULL);
  }
  for (uint32_t i = 0; crew->workers && i < crew->params->threads; i++) free(crew->workers[i].blocks);
  free(crew->workers);
  free(crew->streams);
  free(crew->times_ns);
  if (status != GM_OK || closing.status == GM_OK) return status;
  *err = closing;
  return closing.status;
}

/* ---- one run by all threads ---- */

/* Threads wait here until all of them are there, or go home when one could not be started. */
typedef struct replay_gate {
  pthread_mutex_t lock;
  bool go;
} replay_gate;

typedef struct replay_thread {
  pthread_t id;
  replay_gate *gate;
  replay_worker *worker;
} replay_thread;

static void *replay_thread_main(void *argument) {
  replay_thread *self = argument;
  pthread_mutex_lock(&self->gate->lock);
  bool go = self->gate->go;
  pthread_mutex_unlock(&self->gate->lock);
  if (go) replay_worker_run(self->worker);
  return NULL;
}

static gm_status replay_all(replay_crew *crew, gm_error *err) {
  replay_thread threads[REPLAY_STREAMS_MAX];
  replay_gate gate = {PTHREAD_MUTEX_INITIALIZER, true};
  uint32_t started = 0, wanted = crew->params->threads - 1;
  pthread_mutex_lock(&gate.lock);
  for (; started < wanted; started++) {
    threads[started] = (replay_thread){.gate = &gate, .worker = &crew->workers[started + 1]};
    if (pthread_create(&threads[started].id, NULL, replay_thread_main, &threads[started]) != 0) break;
  }
  gate.go = started == wanted;
  pthread_mutex_unlock(&gate.lock);
  if (gate.go) replay_worker_run(&crew->workers[0]);
  for (uint32_t i = 0; i < started; i++) pthread_join(threads[i].id, NULL);
  pthread_mutex_destroy(&gate.lock);
  return gate.go ? GM_OK : replay_fail(err, GM_ERR_SYSTEM, "a thread could not be started");
}

static gm_status replay_sync(replay_crew *crew, gm_error *err) {
  gm_status status = GM_OK;
  for (uint64_t i = 0; i < replay_stream_count(crew) && status == GM_OK; i++) {
    status = gm_stream_sync(crew->streams[i], err);
  }
  return status;
}

/* One run; *out_driver_allocs and *out_failed are its own. */
static gm_status replay_once(replay_crew *crew, uint64_t *out_driver_allocs, uint64_t *out_failed, gm_error *err) {
  gm_stats before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
  gm_pool_stats(crew->pool, &before);
  crew->workers[0].told = crew->run++ * crew->events->count;
  gm_status status = replay_all(crew, err);
  if (status == GM_OK) status = replay_sync(crew, err);
  if (status != GM_OK) return status;
  *out_failed = 0;
  for (uint32_t i = 0; i < crew->params->threads; i++) {
    const replay_worker *worker = &crew->workers[i];
    *out_failed += worker->failed;
    if (worker->status == GM_OK) continue;
    *err = worker->error;
    return worker->status;
  }
  gm_pool_stats(crew->pool, &after);
  *out_driver_allocs = after.driver_allocs - before.driver_allocs;
  return GM_OK;
}

/* ---- all runs ---- */

static double replay_time(const replay_crew *crew) {
  uint64_t begin = UINT64_MAX, end = 0;
  for (uint32_t i = 0; i < crew->params->threads; i++) {
    if (crew->workers[i].begin_ns < begin) begin = crew->workers[i].begin_ns;
    if (crew->workers[i].end_ns > end) end = crew->workers[i].end_ns;
  }
  return crew->events->count ? (double)(end - begin) / (double)crew->events->count : 0;
}

static gm_status replay_runs(replay_crew *crew, replay_result *out, gm_error *err) {
  for (uint32_t run = 0; run < crew->params->runs; run++) {
    uint64_t failed = 0;
    gm_status status = replay_once(crew, &out->driver_allocs_warm, &failed, err);
    if (status != GM_OK) return status;
    if (run == 0) out->driver_allocs_cold = out->driver_allocs_warm;
    if (failed > out->failed) out->failed = failed;
  }
  out->ns_per_event = replay_time(crew);
  gm_pool_stats(crew->pool, &out->stats);
  return GM_OK;
}

static int replay_compare(const void *a, const void *b) {
  uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
  return left < right ? -1 : left > right;
}

/* One more run, in which each event is timed: reading the clock would be a part of the average above. */
static gm_status replay_tail(replay_crew *crew, replay_result *out, gm_error *err) {
  uint64_t driver_allocs = 0, failed = 0;
  size_t count = crew->events->count * crew->params->threads;
  gm_status status = replay_time_events(crew, err);
  if (status == GM_OK) status = replay_once(crew, &driver_allocs, &failed, err);
  if (status != GM_OK || count == 0) return status;
  qsort(crew->times_ns, count, sizeof *crew->times_ns, replay_compare);
  size_t place = (count - 1) / 100 * 99 + (count - 1) % 100 * 99 / 100;
  out->p99_ns = crew->times_ns[place];
  return GM_OK;
}

gm_status replay_run(gm_pool *pool, const replay_events *events, const replay_params *params, replay_result *out,
                     gm_error *err) {
  replay_crew crew = {.pool = pool, .events = events, .params = params};
  *out = (replay_result){.stats = {.struct_size = sizeof out->stats}, .holes = {.struct_size = sizeof out->holes}};
  gm_status status = replay_create_streams(&crew, err);
  if (status == GM_OK) status = replay_create_workers(&crew, err);
  if (status == GM_OK && params->holes) crew.workers[0].holes = &out->holes;
  if (status == GM_OK) status = replay_runs(&crew, out, err);
  if (status == GM_OK && params->tail) status = replay_tail(&crew, out, err);
  progress_clear();
  return replay_dismiss(&crew, status, err);
}
