#include "core/trace/recording.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/map.h"
#include "core/trace/event_reader.h"
#include "core/trace/trace_output.h"

/* Invariants: events leave in the order of their numbers. The ids of a trace are counted in that order, so they rise. A
 * free of a block that is not alive in the recording leaves nothing: a guard frees a second time what its owner freed
 * before. */

typedef struct recording_block {
  uint64_t id; /* 0: not alive */
  uint64_t stream;
} recording_block;

/* One event buffer and the blocks whose numbers it speaks of. */
typedef struct recording_source {
  gm__event_reader reader;
  recording_block *blocks;
  uint32_t capacity;
} recording_source;

typedef struct recording {
  const gm_services *services;
  gm__trace_output output;
  gm__map streams; /* id → number */
  recording_source *sources;
  uint32_t source_count;
  gm_recording *out;
} recording;

/* ---- events ---- */

/* Streams get numbers from 1 as they come. When the numbers are used up, they begin anew. 0 is the host. */
static gm_status recording_stream(recording *self, uint64_t id, uint64_t *out) {
  *out = 0;
  if (id == 0 || gm__map_find(&self->streams, id, out)) return GM_OK;
  *out = self->streams.count % GM_TRACE_STREAM_MAX + 1;
  if (*out >= self->out->streams) self->out->streams = (uint32_t)*out + 1;
  return gm__map_insert(&self->streams, id, *out);
}

static gm_status recording_reserve(const recording *self, recording_source *source, uint32_t number) {
  uint32_t capacity = source->capacity ? source->capacity : 1024;
  if (number < source->capacity) return GM_OK;
  while (capacity <= number) capacity *= 2; /* numbers have less than 31 bits */
  const size_t size = sizeof *source->blocks;
  if (!gm__grow(self->services, &source->blocks, source->capacity * size, capacity * size)) {
    return GM_ERR_OUT_OF_HOST_MEMORY;
  }
  source->capacity = capacity;
  return GM_OK;
}

static gm_status recording_alloc(recording *self, recording_source *source, const gm__event *event) {
  uint64_t stream;
  gm_status status = recording_reserve(self, source, event->number);
  if (!status) status = recording_stream(self, event->stream, &stream);
  if (status) return status;
  const uint64_t id = ++self->out->allocs;
  source->blocks[event->number] = (recording_block){id, stream};
  gm__trace_output_numbers(&self->output, 'a', (uint64_t[]){id, event->bytes, stream}, 3);
  return GM_OK;
}

static gm_status recording_free(recording *self, const recording_source *source, const gm__event *event) {
  uint64_t stream;
  recording_block *block = event->number < source->capacity ? &source->blocks[event->number] : NULL;
  if (!block || !block->id) return GM_OK;
  gm_status status = recording_stream(self, event->stream, &stream);
  if (status) return status;
  gm__trace_output_numbers(&self->output, 'f', (uint64_t[]){block->id, stream}, stream == block->stream ? 1 : 2);
  block->id = 0;
  self->out->frees++;
  return GM_OK;
}

static void recording_mark(recording *self, const gm__event *event) {
  char line[GM__EVENT_LABEL_MOST + 3] = "m ";
  memcpy(line + 2, event->label, event->bytes);
  gm__trace_output_text(&self->output, line, event->bytes + 2);
  self->out->marks++;
}

static gm_status recording_event(recording *self, recording_source *source, gm_error *err) {
  const gm__event *event = &source->reader.event;
  gm_status status = GM_OK;
  if (event->label) {
    recording_mark(self, event);
  } else {
    status = event->bytes ? recording_alloc(self, source, event) : recording_free(self, source, event);
  }
  if (!status) return gm__event_reader_next(&source->reader, err);
  return gm__fail(err, status, "gm_pool_record_end", "%.300s: no host memory for the blocks in it", self->output.path);
}

/* ---- merging ---- */

/* Returns the source with the earliest event; NULL: none has any. *until: the earliest event of the others. */
static recording_source *recording_earliest(const recording *self, uint64_t *until) {
  recording_source *first = NULL;
  *until = UINT64_MAX;
  for (uint32_t i = 0; i < self->source_count; i++) {
    recording_source *source = &self->sources[i];
    if (!source->reader.event.now) continue;
    if (!first || source->reader.event.now < first->reader.event.now) {
      if (first) *until = first->reader.event.now;
      first = source;
    } else if (source->reader.event.now < *until) {
      *until = source->reader.event.now;
    }
  }
  return first;
}

static gm_status recording_merge(recording *self, gm_error *err) {
  recording_source *source;
  gm_status status = GM_OK;
  uint64_t until;
  while (!status && (source = recording_earliest(self, &until))) {
    do status = recording_event(self, source, err);
    while (!status && source->reader.event.now && source->reader.event.now < until);
  }
  return status;
}

/* ---- beginning and end ---- */

static gm_status recording_begin(recording *self, const gm__recorder *recorder, gm_error *err) {
  gm_status status = GM_OK;
  self->sources = gm__alloc_array(self->services, GM__RECORDER_BUFFERS, sizeof *self->sources);
  if (!self->sources) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_pool_record_end", "%.300s: no host memory to merge it",
                    recorder->path);
  }
  for (uint32_t i = 0; !status && i < GM__RECORDER_BUFFERS; i++) {
    gm__event_buffer *events = recorder->buffers[i];
    if (events) status = gm__event_reader_begin(&self->sources[self->source_count++].reader, events, err);
  }
  return status;
}

static void recording_end(recording *self) {
  for (uint32_t i = 0; i < self->source_count; i++) {
    recording_source *source = &self->sources[i];
    gm__release(self->services, source->blocks, source->capacity * sizeof *source->blocks);
  }
  gm__release(self->services, self->sources, GM__RECORDER_BUFFERS * sizeof *self->sources);
  gm__map_clear(&self->streams);
  gm__trace_output_close(&self->output);
}

static gm_status recording_write(gm__recorder *recorder, const char *comment, gm_recording *out, gm_error *err) {
  static const char head[] = "gmtrace 1";
  recording self = {.services = recorder->services, .out = out};
  gm_status status =
      gm__trace_output_open(recorder->services, &recorder->file, recorder->path, recorder->packed, &self.output, err);
  if (status) return status;
  gm__map_init(&self.streams, recorder->services);
  out->streams = 1;
  gm__trace_output_text(&self.output, head, sizeof head - 1);
  gm__trace_output_text(&self.output, comment, strlen(comment));
  status = recording_begin(&self, recorder, err);
  if (!status) status = recording_merge(&self, err);
  if (!status) status = gm__trace_output_end(&self.output, err);
  out->file_bytes = self.output.written;
  recording_end(&self);
  return status;
}

gm_status gm__recorder_finish(gm__recorder *recorder, const char *comment, gm_recording *out, gm_error *err) {
  gm_recording found = {.struct_size = sizeof found, .already_alive = recorder->already_alive};
  gm_status status = gm__recorder_settle(recorder, err);
  if (!status) status = recording_write(recorder, comment, &found, err);
  if (status) gm__output_file_empty(&recorder->file); /* half a trace would read like a whole one */
  const gm_status closed = gm__output_file_close(&recorder->file, recorder->path, status ? NULL : err);
  if (!status && !closed && out) *out = found;
  return status ? status : closed;
}
