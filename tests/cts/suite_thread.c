/* Several threads on one device, each with a stream of its own, and all on one. */
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/thread.h"
#include "cts/cts.h"

enum { THREADS = 4, THREAD_ROOM = 8192 };

typedef struct thread_job {
  cts t; /* a view of the device with books of its own */
  gm__thread thread;
  unsigned char want[THREAD_ROOM], got[THREAD_ROOM], source[512];
} thread_job;

static void thread_work(cts *t, thread_job *job, void *stream) {
  gm_memory memory;
  if (!cts_memory(t, (uint32_t)cts_random(t, t->type_count), THREAD_ROOM, &memory)) return;
  const bool contents = t->has & CTS_CONTENTS;
  memset(job->want, 0, THREAD_ROOM);
  CTS_OK(t, t->ops->fill(t->device, stream, &memory, 0, THREAD_ROOM, job->want, 1, NULL, &t->err));
  for (int i = 0; i < 40; i++) {
    const uint64_t bytes = 1 + cts_random(t, 500), at = cts_random(t, THREAD_ROOM - 512);
    gm_backend_point point = {0};
    gm_backend_point *out = i % 2 && (t->has & CTS_POINTS) ? &point : NULL;
    cts_noise(t, job->source, sizeof job->source);
    memcpy(job->want + at, job->source, bytes);
    CTS_OK(t, t->ops->copy_to_device(t->device, stream, &memory, at, job->source, bytes, out, &t->err));
    CTS_OK(t, cts_reach(t, &point));
    if (i % 10) continue;
    gm_memory other;
    if (!cts_memory(t, 0, 1 + cts_random(t, 100000), &other)) return;
    cts_memory_free(t, &other);
  }
  if (!contents) return;
  CTS_OK(t, t->ops->copy_to_host(t->device, stream, &memory, 0, job->got, THREAD_ROOM, NULL, &t->err));
  cts_same(t, job->got, job->want, THREAD_ROOM, "memory of one thread");
}

static void thread_run(void *arg) {
  thread_job *job = arg;
  for (int i = 0; i < 4 && !job->t.failed; i++) thread_work(&job->t, job, job->t.streams[0]);
}

/* A job's books: nothing of the parent's; the stream is closed by the parent. */
static void thread_prepare(cts *t, thread_job *job, void *stream, gm_stream_kind kind, uint64_t seed) {
  job->t = (cts){.mode = t->mode, .ops = t->ops, .driver = t->driver, .device = t->device, .info = t->info};
  job->t.type_count = t->type_count;
  memcpy(job->t.types, t->types, sizeof t->types);
  job->t.has = t->has;
  job->t.name = t->name;
  job->t.random = seed;
  job->t.stream_count = stream ? 1 : 0;
  job->t.streams[0] = stream;
  job->t.kinds[0] = kind;
}

static void thread_finish(cts *t, thread_job *job) {
  job->t.stream_count = 0;
  cts_clean(&job->t, GM_CLOSE_NORMAL);
  if (!job->t.failed || t->failed) return;
  t->failed = true;
  memcpy(t->why, job->t.why, sizeof t->why);
}

static void thread_all(cts *t, bool own_streams) {
  thread_job *jobs = calloc(THREADS, sizeof *jobs);
  void *stream = NULL;
  int started = 0;
  bool good = jobs && (own_streams || cts_stream(t, &stream));
  for (int i = 0; i < THREADS && good; i++) {
    good = !own_streams || cts_stream(t, &stream);
    if (good) {
      thread_prepare(t, &jobs[i], stream, t->stream_count ? t->kinds[t->stream_count - 1] : GM_STREAM_FIFO,
                     (uint64_t)i);
    }
  }
  for (; good && started < THREADS; started++) {
    good = gm__thread_create(&jobs[started].thread, "cts", thread_run, &jobs[started], &t->err) == GM_OK;
  }
  for (int i = 0; i < started; i++) gm__thread_join(&jobs[i].thread);
  for (int i = 0; i < started; i++) thread_finish(t, &jobs[i]);
  free(jobs);
  cts_check(t, good, "four threads with streams can be started", __FILE__, __LINE__);
}

static void thread_own_streams(cts *t) { thread_all(t, true); }
static void thread_one_stream(cts *t) { thread_all(t, false); }

/* ---- a stream that is another thread's own ---- */

typedef struct thread_owner {
  cts *t;
  gm_memory memory;
  void *stream;
  gm_backend_point point; /* of its fill */
  gm_status opened, filled, synced;
  sem_t ready, go;
  gm__thread thread;
} thread_owner;

static void thread_await(sem_t *at) {
  while (sem_wait(at) != 0) {}
}

static void thread_own(void *arg) {
  thread_owner *owner = arg;
  const uint32_t word = 5;
  cts *t = owner->t;
  gm_stream_kind kind;
  owner->opened = t->mode->engine->thread_stream(t, &owner->stream, &kind);
  if (owner->opened == GM_OK) {
    owner->filled = t->ops->fill(t->device, owner->stream, &owner->memory, 0, THREAD_ROOM, &word, sizeof word,
                                 &owner->point, &t->err);
  }
  sem_post(&owner->ready);
  thread_await(&owner->go);
  if (owner->opened) return;
  owner->synced = t->ops->stream_sync(t->device, owner->stream, NULL);
  if (!owner->filled) t->ops->point_release(t->device, &owner->point, GM_CLOSE_NORMAL);
  t->ops->stream_close(t->device, owner->stream, GM_CLOSE_NORMAL);
}

/* Whatever is asked of it elsewhere would be asked of this thread's own stream: it is refused, and nothing written. */
static void thread_refuses(cts *t, const thread_owner *owner) {
  const uint32_t word = 6;
  const gm_copy_item item = {.src = &owner->memory, .dst = &owner->memory, .src_offset = 64, .bytes = 32};
  gm_backend_point point = {77, 77};
  void *stream = owner->stream;
  CTS_IS(t, owner->filled, GM_OK);
  CTS_IS(t, t->ops->point_record(t->device, stream, &point, &t->err), GM_ERR_INVALID_ARGUMENT);
  CTS_CHECK(t, t->err.message[0]);
  CTS_IS(t, t->ops->stream_sync(t->device, stream, &t->err), GM_ERR_INVALID_ARGUMENT);
  CTS_IS(t, t->ops->point_wait_on(t->device, stream, &owner->point, &t->err), GM_ERR_INVALID_ARGUMENT);
  CTS_IS(t, t->ops->copy(t->device, stream, &item, &point, &t->err), GM_ERR_INVALID_ARGUMENT);
  CTS_IS(t, t->ops->fill(t->device, stream, &owner->memory, 0, 64, &word, sizeof word, &point, &t->err),
         GM_ERR_INVALID_ARGUMENT);
  CTS_CHECK(t, point.handle == 77 && point.value == 77);
  CTS_OK(t, t->ops->point_wait(t->device, &owner->point, UINT64_MAX, &t->err)); /* points are anybody's */
}

static void thread_foreign_stream(cts *t) {
  thread_owner owner = {.t = t};
  if (!t->mode->engine->thread_stream) {
    cts_skip(t, "the API has no streams of a thread's own");
    return;
  }
  if (!cts_memory(t, 0, THREAD_ROOM, &owner.memory)) return;
  sem_init(&owner.ready, 0, 0);
  sem_init(&owner.go, 0, 0);
  CTS_OK(t, gm__thread_create(&owner.thread, "cts", thread_own, &owner, &t->err));
  thread_await(&owner.ready);
  if (owner.opened == GM_ERR_NOT_SUPPORTED) {
    cts_skip(t, t->err.message);
  } else if (cts_check(t, owner.opened == GM_OK, "a thread lends its own stream", __FILE__, __LINE__)) {
    thread_refuses(t, &owner);
  }
  sem_post(&owner.go);
  gm__thread_join(&owner.thread);
  sem_destroy(&owner.ready);
  sem_destroy(&owner.go);
  CTS_CHECK(t, t->failed || owner.synced == GM_OK);
}

static const cts_case thread_cases[] = {
    {"thread.own_streams", thread_own_streams, CTS_STREAMS | CTS_POINTS},
    {"thread.one_stream", thread_one_stream, CTS_STREAMS | CTS_POINTS},
    {"thread.foreign_stream", thread_foreign_stream, CTS_ENGINE | CTS_POINTS | CTS_CONTENTS},
};
const cts_suite cts_thread_suite = {thread_cases, sizeof thread_cases / sizeof thread_cases[0]};
