#include "backends/cpu/cpu_stream.h"

#include <stdatomic.h>

#include "backends/cpu/cpu_device.h"
#include "backends/cpu/cpu_entries.h"
#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/thread.h"

/* Invariants:
 * - Tasks get the numbers 1, 2, … under the stream lock. They run in that order, one at a time. The worker runs them.
 *   When nothing is queued or running, a thread that waits for its own task runs it itself.
 * - completed <= submitted; submitted - completed = tasks in the ring + (running ? 1 : 0).
 * - A wait names an earlier task of another stream, so waits never form a circle, and each of them ends.
 * - A queued wait holds a reference on the stream that it waits for: that struct outlives its close. */

/* This bounds the memory of a stream: a thread that submits more waits for room. */
enum { STREAM_TASKS = 128 };

typedef struct cpu_stream {
  const gm_services *services;
  atomic_uint references;
  gm__mutex lock;
  gm__cond changed; /* one of the members below has changed */
  uint64_t submitted, completed;
  gm__cpu_task *tasks; /* a ring, made with the worker */
  uint32_t first, count;
  bool running, closing;
  gm__thread worker; /* it runs when `tasks` is not NULL */
} cpu_stream;

static void stream_destroy(cpu_stream *stream) {
  gm__release(stream->services, stream->tasks, STREAM_TASKS * sizeof *stream->tasks);
  gm__release(stream->services, stream, sizeof *stream);
}

static void stream_release(cpu_stream *stream) {
  if (atomic_fetch_sub(&stream->references, 1) != 1) return;
  gm__cond_destroy(&stream->changed);
  gm__mutex_destroy(&stream->lock);
  stream_destroy(stream);
}

/* Wait until task `value` is done. False: `deadline` passed first. */
static bool stream_reach(cpu_stream *stream, uint64_t value, uint64_t deadline) {
  bool reached = true;
  gm__mutex_lock(&stream->lock);
  while (stream->completed < value && reached) {
    reached = gm__cond_wait_until(&stream->changed, &stream->lock, deadline) || stream->completed >= value;
  }
  gm__mutex_unlock(&stream->lock);
  return reached;
}

static void stream_run(const gm__cpu_task *task) {
  if (task->kind != GM__CPU_WAIT) {
    gm__cpu_task_run(task);
    return;
  }
  cpu_stream *other = (cpu_stream *)(uintptr_t)task->as.wait.handle;
  stream_reach(other, task->as.wait.value, GM__NEVER);
  stream_release(other);
}

/* Run the task with the lock released. REQUIRES: stream lock. */
static void stream_run_unlocked(cpu_stream *stream, const gm__cpu_task *task) {
  stream->running = true;
  gm__mutex_unlock(&stream->lock);
  stream_run(task);
  gm__mutex_lock(&stream->lock);
  stream->running = false;
  stream->completed++;
  gm__cond_broadcast(&stream->changed);
}

static void stream_worker(void *arg) {
  cpu_stream *stream = arg;
  gm__mutex_lock(&stream->lock);
  for (;;) {
    while (stream->running || (stream->count == 0 && !stream->closing)) {
      gm__cond_wait(&stream->changed, &stream->lock);
    }
    if (stream->count == 0) break;
    const gm__cpu_task task = stream->tasks[stream->first];
    stream->first = (stream->first + 1) % STREAM_TASKS;
    stream->count--;
    stream_run_unlocked(stream, &task);
  }
  gm__mutex_unlock(&stream->lock);
}

static gm_status stream_start(cpu_stream *stream, gm_error *err) {
  if (stream->tasks) return GM_OK;
  gm__cpu_task *tasks = gm__alloc_array(stream->services, STREAM_TASKS, sizeof *tasks);
  if (!tasks) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "cpu stream", "no host memory for its queue");
  const gm_status status = gm__thread_create(&stream->worker, "gm-cpu-stream", stream_worker, stream, err);
  if (status) {
    gm__release(stream->services, tasks, STREAM_TASKS * sizeof *tasks);
    return status;
  }
  stream->tasks = tasks;
  return GM_OK;
}

/* REQUIRES: stream lock. */
static gm_status stream_push(cpu_stream *stream, const gm__cpu_task *task, uint64_t *out_value, gm_error *err) {
  const gm_status status = stream_start(stream, err);
  if (status) return status;
  while (stream->count == STREAM_TASKS) gm__cond_wait(&stream->changed, &stream->lock);
  stream->tasks[(stream->first + stream->count) % STREAM_TASKS] = *task;
  stream->count++;
  *out_value = ++stream->submitted;
  gm__cond_broadcast(&stream->changed);
  return GM_OK;
}

gm_status gm__cpu_stream_submit(void *stream, const gm__cpu_task *task, gm_backend_point *out, gm_error *err) {
  cpu_stream *self = stream;
  gm_status status = GM_OK;
  uint64_t value = 0;
  gm__mutex_lock(&self->lock);
  if (!out && self->completed == self->submitted) {
    self->submitted++;
    stream_run_unlocked(self, task);
  } else {
    status = stream_push(self, task, &value, err);
  }
  gm__mutex_unlock(&self->lock);
  if (status) return status;
  if (out) {
    *out = (gm_backend_point){.handle = (uintptr_t)self, .value = value};
  } else {
    stream_reach(self, value, GM__NEVER);
  }
  return GM_OK;
}

gm_status gm__cpu_stream_create(void *device, void **out_stream, gm_stream_kind *out_kind, gm_error *err) {
  const gm_services *services = ((gm__cpu_device *)device)->services;
  cpu_stream *stream = gm__alloc(services, sizeof *stream);
  if (!stream) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "stream_create", "no host memory for the stream");
  stream->services = services;
  atomic_init(&stream->references, 1);
  gm__mutex_init(&stream->lock, GM__RANK_STREAM);
  gm__cond_init(&stream->changed);
  *out_stream = stream;
  *out_kind = GM_STREAM_FIFO;
  return GM_OK;
}

/* In a forked child the worker does not exist, and its copy of the lock may be locked for ever. */
void gm__cpu_stream_close(void *device, void *stream, gm_close_mode mode) {
  (void)device;
  cpu_stream *self = stream;
  if (mode == GM_CLOSE_ABANDON) {
    stream_destroy(self);
    return;
  }
  gm__mutex_lock(&self->lock);
  self->closing = true;
  gm__cond_broadcast(&self->changed);
  gm__mutex_unlock(&self->lock);
  if (self->tasks) gm__thread_join(&self->worker);
  stream_release(self);
}

gm_status gm__cpu_point_record(void *device, void *stream, gm_backend_point *out, gm_error *err) {
  (void)device, (void)err;
  cpu_stream *self = stream;
  gm__mutex_lock(&self->lock);
  const bool passed = self->completed == self->submitted;
  const uint64_t value = self->submitted;
  gm__mutex_unlock(&self->lock);
  *out = (gm_backend_point){.handle = passed ? 0 : (uintptr_t)self, .value = passed ? 0 : value};
  return GM_OK;
}

gm_status gm__cpu_stream_sync(void *device, void *stream, gm_error *err) {
  gm_backend_point point;
  gm__cpu_point_record(device, stream, &point, err);
  return gm__cpu_point_wait(device, &point, GM__NEVER, err);
}

gm_status gm__cpu_point_done(void *device, const gm_backend_point *point, bool *out, gm_error *err) {
  (void)device, (void)err;
  cpu_stream *stream = (cpu_stream *)(uintptr_t)point->handle;
  *out = !stream || stream_reach(stream, point->value, 0);
  return GM_OK;
}

gm_status gm__cpu_point_wait(void *device, const gm_backend_point *point, uint64_t timeout_ns, gm_error *err) {
  (void)device;
  cpu_stream *stream = (cpu_stream *)(uintptr_t)point->handle;
  if (!stream || stream_reach(stream, point->value, gm__deadline_after(timeout_ns))) return GM_OK;
  return gm__fail(err, GM_ERR_TIMEOUT, "point_wait", "not reached within %llu ns", (unsigned long long)timeout_ns);
}

gm_status gm__cpu_point_wait_on(void *device, void *stream, const gm_backend_point *point, gm_error *err) {
  cpu_stream *self = stream, *other = (cpu_stream *)(uintptr_t)point->handle;
  bool done = other == self; /* later work of a FIFO follows an earlier point by itself */
  if (!done) gm__cpu_point_done(device, point, &done, err);
  if (done) return GM_OK;
  atomic_fetch_add(&other->references, 1);
  const gm__cpu_task task = {.kind = GM__CPU_WAIT, .as.wait = *point};
  gm_backend_point unused;
  const gm_status status = gm__cpu_stream_submit(self, &task, &unused, err);
  if (status) stream_release(other);
  return status;
}
