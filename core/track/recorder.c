#include "core/track/recorder.h"

#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/zlib.h"

/* Invariants: a recording has files, or a sink. Each event buffer has one chunk in host memory, however long the
 * recording is. Its other chunks are chained in the scratch file: the head of each has the place of the next one. The
 * order of events across event buffers is found at the end, by their numbers. */

enum { RECORDER_SLOTS_MOST = INT32_MAX };

static bool recorder_is_packed(const char *path) {
  const size_t length = strlen(path);
  return length >= 3 && strcmp(path + length - 3, ".gz") == 0;
}

static gm_status recorder_begin(gm__recorder *recorder, const char *path, gm_error *err) {
  const size_t bytes = strlen(path) + 1;
  recorder->packed = recorder_is_packed(path);
  gm_error why;
  if (recorder->packed && !gm__zlib_open(&why)) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_pool_record_begin",
                    "%.300s: a name without .gz is a plain trace. %.300s", path, why.message);
  }
  recorder->path = gm__alloc(recorder->services, bytes);
  if (!recorder->path) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_pool_record_begin", "no host memory for a path");
  }
  memcpy(recorder->path, path, bytes);
  gm_status status = gm__output_file_scratch(path, &recorder->scratch, err);
  return status ? status : gm__output_file_open(path, &recorder->file, err);
}

static gm__recorder *recorder_new(const gm_services *services) {
  gm__recorder *recorder = gm__alloc(services, sizeof *recorder);
  if (!recorder) return NULL;
  recorder->services = services;
  recorder->file.fd = recorder->scratch.fd = -1;
  gm__mutex_init(&recorder->lock, GM__RANK_RECORDER);
  return recorder;
}

gm_status gm__recorder_open_sink(const gm_services *services, gm__recorder_sink *sink, gm__recorder **out,
                                 gm_error *err) {
  *out = recorder_new(services);
  if (*out) {
    (*out)->sink = sink;
    return GM_OK;
  }
  sink->end(sink);
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_pool_profile_begin", "no host memory for a profile");
}

gm_status gm__recorder_open(const gm_services *services, const char *path, gm__recorder **out, gm_error *err) {
  gm__recorder *recorder = recorder_new(services);
  if (!recorder) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_pool_record_begin", "no host memory for a recording");
  }
  gm_status status = recorder_begin(recorder, path, err);
  if (status == GM_OK) {
    *out = recorder;
  } else {
    gm__recorder_close(recorder, false);
  }
  return status;
}

/* Keeps the reason why the trace will not be whole, unless there is one already. */
static void recorder_fail(gm__recorder *recorder, const gm_error *failure) {
  gm__mutex_lock(&recorder->lock);
  if (!recorder->failure.status) recorder->failure = *failure;
  gm__mutex_unlock(&recorder->lock);
  atomic_store_explicit(&recorder->failed, true, memory_order_relaxed);
}

bool gm__recorder_has_failed(gm__recorder *recorder, gm_error *err) {
  gm__mutex_lock(&recorder->lock);
  const bool failed = recorder->failure.status != GM_OK;
  if (failed && err) *err = recorder->failure;
  gm__mutex_unlock(&recorder->lock);
  return failed;
}

static void recorder_lacks_memory(gm__recorder *recorder) {
  gm_error failure;
  gm__fail(&failure, GM_ERR_OUT_OF_HOST_MEMORY, recorder->sink ? "gm_pool_profile_read" : "gm_pool_record_end",
           "%.300s: no host memory for what a thread did", recorder->sink ? "the profile" : recorder->path);
  recorder_fail(recorder, &failure);
}

gm__event_buffer *gm__recorder_buffer(gm__recorder *recorder, uint32_t number) {
  gm__event_buffer *events = recorder->buffers[number];
  if (events) return events;
  events = gm__alloc(recorder->services, sizeof *events);
  if (!events) {
    recorder_lacks_memory(recorder);
    return NULL;
  }
  events->recorder = recorder;
  events->clock = &recorder->clock;
  events->used = 1;
  events->number = number;
  recorder->buffers[number] = events;
  return events;
}

/* ---- chunks ---- */

static uint32_t recorder_take_slot(gm__recorder *recorder) { return atomic_fetch_add(&recorder->slots, 1); }

static gm_status recorder_write(gm__recorder *recorder, gm__event_buffer *events, uint32_t next, gm_error *err) {
  events->words[0] = events->used | (uint64_t)next << 32;
  if (events->slot > RECORDER_SLOTS_MOST) {
    return gm__fail(err, GM_ERR_IO, "gm_pool_record_end", "%.300s: the recording is too long", recorder->path);
  }
  return gm__output_file_write_at(&recorder->scratch, recorder->path, (uint64_t)events->slot * sizeof events->words,
                                  events->words, sizeof events->words, err);
}

void gm__recorder_spill(gm__recorder *recorder, gm__event_buffer *events) {
  GM__UNCANCELLED();
  gm_error failure;
  const bool works = !atomic_load_explicit(&recorder->failed, memory_order_relaxed);
  if (works && recorder->sink) {
    if (recorder->sink->take(recorder->sink, events)) recorder_lacks_memory(recorder);
  } else if (works) {
    if (events->spilled == 0) events->first = events->slot = recorder_take_slot(recorder);
    const uint32_t next = recorder_take_slot(recorder);
    if (recorder_write(recorder, events, next, &failure)) recorder_fail(recorder, &failure);
    events->slot = next;
    events->spilled++;
  }
  events->used = 1;
}

gm_status gm__recorder_settle(gm__recorder *recorder, gm_error *err) {
  gm_status status = gm__recorder_has_failed(recorder, err) ? recorder->failure.status : GM_OK;
  for (uint32_t i = 0; !status && i < GM__RECORDER_BUFFERS; i++) {
    gm__event_buffer *events = recorder->buffers[i];
    if (events && events->spilled) status = recorder_write(recorder, events, 0, err);
  }
  return status;
}

void gm__recorder_close(gm__recorder *recorder, bool forked) {
  if (!recorder) return;
  const gm_services *services = recorder->services;
  gm__output_file_close(&recorder->file, recorder->path, NULL);
  gm__output_file_close(&recorder->scratch, recorder->path, NULL);
  for (uint32_t i = 0; i < GM__RECORDER_BUFFERS; i++)
    gm__release(services, recorder->buffers[i], sizeof(gm__event_buffer));
  if (recorder->path) gm__release(services, recorder->path, strlen(recorder->path) + 1);
  if (recorder->sink) recorder->sink->end(recorder->sink);
  if (!forked) gm__mutex_destroy(&recorder->lock);
  gm__release(services, recorder, sizeof *recorder);
}
