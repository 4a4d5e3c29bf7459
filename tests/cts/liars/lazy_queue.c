/* The queues of the lazy backend. Invariants, under the device lock: done <= submitted, and the ring has the jobs
 * done + 1 to submitted. */
#include <string.h>

#include "cts/liars/lazy.h"

static unsigned char *queue_at(const gm_memory *memory) { return (unsigned char *)(uintptr_t)memory->handle; }

static void queue_box(const lazy_job *job) {
  const gm_rect *box = &job->box;
  const uint64_t src_row = box->src_row_pitch ? box->src_row_pitch : box->row_bytes;
  const uint64_t dst_row = box->dst_row_pitch ? box->dst_row_pitch : box->row_bytes;
  const uint64_t src_slice = box->src_slice_pitch ? box->src_slice_pitch : src_row * box->rows;
  const uint64_t dst_slice = box->dst_slice_pitch ? box->dst_slice_pitch : dst_row * box->rows;
  for (uint64_t z = 0; z < box->slices; z++) {
    for (uint64_t y = 0; y < box->rows; y++) {
      memmove(job->dst + box->dst_offset + z * dst_slice + y * dst_row,
              job->src + box->src_offset + z * src_slice + y * src_row, box->row_bytes);
    }
  }
}

/* The filled part doubles with each step. */
static void queue_fill(const lazy_job *job) {
  const uint64_t bytes = job->box.row_bytes;
  uint64_t done = bytes < job->pattern_bytes ? bytes : job->pattern_bytes;
  memcpy(job->dst, job->pattern, done);
  while (done < bytes) {
    const uint64_t more = done < bytes - done ? done : bytes - done;
    memcpy(job->dst + done, job->dst, more);
    done += more;
  }
}

/* Runs the jobs of `stream` up to `value`. False: it waits for itself, or for what nobody has submitted. */
static bool queue_run(lazy_stream *stream, uint64_t value) {
  if (stream->done >= value) return true;
  if (stream->running) return false;
  stream->running = true;
  bool good = true;
  while (stream->done < value) {
    if (!stream->count) good = false;
    if (!good) break;
    const lazy_job *job = &stream->jobs[stream->first];
    if (job->src) {
      queue_box(job);
    } else if (job->pattern_bytes) {
      queue_fill(job);
    } else {
      good = queue_run((lazy_stream *)(uintptr_t)job->wait.handle, job->wait.value);
    }
    if (!good) break;
    stream->first = (stream->first + 1) % stream->room;
    stream->count--;
    stream->done++;
  }
  stream->running = false;
  return good;
}

static gm_status queue_circle(gm_error *err) {
  return lazy_fail(err, GM_ERR_DRIVER, "lazy queue", "queues wait for each other: this point never passes");
}

static gm_status queue_reach(lazy_device *device, lazy_stream *stream, uint64_t value, gm_error *err) {
  pthread_mutex_lock(&device->lock);
  const bool good = queue_run(stream, value);
  pthread_mutex_unlock(&device->lock);
  return good ? GM_OK : queue_circle(err);
}

static bool queue_grow(lazy_device *device, lazy_stream *stream) {
  const gm_services *services = device->services;
  const uint32_t room = stream->room ? stream->room * 2 : 16;
  lazy_job *jobs = services->alloc(services->user, room * sizeof *jobs, 16);
  if (!jobs) return false;
  for (uint32_t i = 0; i < stream->count; i++) jobs[i] = stream->jobs[(stream->first + i) % stream->room];
  if (stream->jobs) services->release(services->user, stream->jobs, stream->room * sizeof *jobs);
  stream->jobs = jobs;
  stream->room = room;
  stream->first = 0;
  return true;
}

/* `out` NULL: it is done when this returns. */
static gm_status queue_submit(void *device, void *to, const lazy_job *job, gm_backend_point *out, gm_error *err) {
  lazy_device *self = device;
  lazy_stream *stream = to;
  pthread_mutex_lock(&self->lock);
  const bool room = stream->count < stream->room || queue_grow(self, stream);
  if (room) {
    stream->jobs[(stream->first + stream->count++) % stream->room] = *job;
    stream->submitted++;
  }
  const uint64_t value = stream->submitted;
  const bool good = !room || out || queue_run(stream, value);
  pthread_mutex_unlock(&self->lock);
  if (!room) return lazy_fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "lazy queue", "no host memory for a job");
  if (!good) return queue_circle(err);
  if (out) *out = (gm_backend_point){.handle = (uintptr_t)stream, .value = value};
  return GM_OK;
}

gm_status lazy_stream_create(void *device, void **out_stream, gm_stream_kind *out_kind, gm_error *err) {
  lazy_device *self = device;
  lazy_stream *stream = self->services->alloc(self->services->user, sizeof *stream, 16);
  if (!stream) return lazy_fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "stream_create", "no host memory");
  memset(stream, 0, sizeof *stream);
  pthread_mutex_lock(&self->lock);
  stream->next = self->streams;
  self->streams = stream;
  pthread_mutex_unlock(&self->lock);
  *out_stream = stream;
  *out_kind = GM_STREAM_FIFO;
  return GM_OK;
}

/* The record stays until the device closes. */
void lazy_stream_close(void *device, void *stream, gm_close_mode mode) {
  lazy_stream *self = stream;
  const gm_services *services = ((lazy_device *)device)->services;
  if (mode == GM_CLOSE_NORMAL) lazy_stream_sync(device, stream, NULL);
  if (self->jobs) services->release(services->user, self->jobs, self->room * sizeof *self->jobs);
  self->jobs = NULL;
  self->room = self->count = 0;
}

gm_status lazy_stream_flush(void *device, void *stream, gm_error *err) {
  (void)device, (void)stream, (void)err;
  return GM_OK;
}

gm_status lazy_stream_barrier(void *device, void *stream, gm_error *err) {
  return lazy_stream_flush(device, stream, err);
}

gm_status lazy_stream_sync(void *device, void *stream, gm_error *err) {
  return queue_reach(device, stream, ((lazy_stream *)stream)->submitted, err);
}

gm_status lazy_point_record(void *device, void *stream, gm_backend_point *out, gm_error *err) {
  lazy_device *self = device;
  lazy_stream *queue = stream;
  (void)err;
  pthread_mutex_lock(&self->lock);
  const bool passed = queue->done == queue->submitted;
  *out = (gm_backend_point){.handle = passed ? 0 : (uintptr_t)queue, .value = passed ? 0 : queue->submitted};
  pthread_mutex_unlock(&self->lock);
  return GM_OK;
}

/* Each question does one job. */
gm_status lazy_point_done(void *device, const gm_backend_point *point, bool *out, gm_error *err) {
  lazy_device *self = device;
  lazy_stream *stream = (lazy_stream *)(uintptr_t)point->handle;
  (void)err;
  if (!stream) {
    *out = true;
    return GM_OK;
  }
  pthread_mutex_lock(&self->lock);
  if (stream->done < point->value) queue_run(stream, stream->done + 1);
  *out = stream->done >= point->value;
  pthread_mutex_unlock(&self->lock);
  return GM_OK;
}

gm_status lazy_point_wait(void *device, const gm_backend_point *point, uint64_t timeout_ns, gm_error *err) {
  (void)timeout_ns; /* work that somebody waits for is done at once */
  return point->handle ? queue_reach(device, (lazy_stream *)(uintptr_t)point->handle, point->value, err) : GM_OK;
}

gm_status lazy_point_wait_on(void *device, void *stream, const gm_backend_point *point, gm_error *err) {
  const lazy_job job = {.wait = *point};
  gm_backend_point unused;
  if (!point->handle || (void *)(uintptr_t)point->handle == stream) return GM_OK;
  return queue_submit(device, stream, &job, &unused, err);
}

void lazy_point_release(void *device, const gm_backend_point *point, gm_close_mode mode) {
  (void)device, (void)point, (void)mode;
}

gm_status lazy_point_copy(void *device, const gm_backend_point *point, gm_backend_point *out, gm_error *err) {
  (void)device, (void)err;
  *out = *point;
  return GM_OK;
}

static gm_rect queue_line(uint64_t src_offset, uint64_t dst_offset, uint64_t bytes) {
  return (gm_rect){.row_bytes = bytes, .rows = 1, .slices = 1, .src_offset = src_offset, .dst_offset = dst_offset};
}

gm_status lazy_copy_to_device(void *device, void *stream, const gm_memory *dst, uint64_t offset, const void *src,
                              uint64_t bytes, gm_backend_point *out, gm_error *err) {
  const gm_rect line = queue_line(0, offset, bytes);
  return lazy_rect_to_device(device, stream, dst, src, &line, out, err);
}

gm_status lazy_copy_to_host(void *device, void *stream, const gm_memory *src, uint64_t offset, void *dst,
                            uint64_t bytes, gm_backend_point *out, gm_error *err) {
  const gm_rect line = queue_line(offset, 0, bytes);
  return lazy_rect_to_host(device, stream, src, dst, &line, out, err);
}

gm_status lazy_copy(void *device, void *stream, const gm_copy_item *item, gm_backend_point *out, gm_error *err) {
  const gm_rect line = queue_line(item->src_offset, item->dst_offset, item->bytes);
  return lazy_rect_copy(device, stream, item->dst, item->src, &line, out, err);
}

gm_status lazy_fill(void *device, void *stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                    const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err) {
  lazy_job job = {.dst = queue_at(dst) + offset, .box.row_bytes = bytes, .pattern_bytes = pattern_bytes};
  memcpy(job.pattern, pattern, pattern_bytes);
  return queue_submit(device, stream, &job, out, err);
}

gm_status lazy_rect_to_device(void *device, void *stream, const gm_memory *dst, const void *src, const gm_rect *rect,
                              gm_backend_point *out, gm_error *err) {
  const lazy_job job = {.dst = queue_at(dst), .src = src, .box = *rect};
  return queue_submit(device, stream, &job, out, err);
}

gm_status lazy_rect_to_host(void *device, void *stream, const gm_memory *src, void *dst, const gm_rect *rect,
                            gm_backend_point *out, gm_error *err) {
  const lazy_job job = {.dst = dst, .src = queue_at(src), .box = *rect};
  return queue_submit(device, stream, &job, out, err);
}

gm_status lazy_rect_copy(void *device, void *stream, const gm_memory *dst, const gm_memory *src, const gm_rect *rect,
                         gm_backend_point *out, gm_error *err) {
  const lazy_job job = {.dst = queue_at(dst), .src = queue_at(src), .box = *rect};
  return queue_submit(device, stream, &job, out, err);
}

gm_status lazy_copy_many(void *device, void *stream, const gm_copy_item *items, uint32_t count, gm_backend_point *out,
                         gm_error *err) {
  gm_backend_point last = {0};
  for (uint32_t i = 0; i < count; i++) {
    const gm_status status = lazy_copy(device, stream, &items[i], out ? &last : NULL, err);
    if (status) return status;
  }
  if (out) *out = last;
  return GM_OK;
}
