#include "core/trace/live_profile.h"

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/trace/event_reader.h"
#include "core/trace/profile_tally.h"

/* Invariants. A part has what one event buffer told, and the lock of that is the part's. All events of a block are in
 * one event buffer. Events have one numbering, so the age of a block in events is that among all threads. A free of a
 * block that is not alive in the profile counts as nothing, as in a recording. */

enum { LIVE_FIRST = 256 }; /* blocks that a part has room for at first */

typedef struct live_block {
  uint64_t born; /* number of its event; 0: it is not alive */
  uint64_t bytes, stream;
} live_block;

typedef struct live_part {
  gm__event_reader reader; /* between two chunks: the stream of the events that follow */
  uint64_t last;           /* the number of the last event */
  live_block *blocks;
  uint32_t capacity;
  gm__map sizes, streams; /* as in gm__profile_sum */
  gm__profile_tally tally;
} live_part;

typedef struct live_profile {
  gm__recorder_sink sink; /* first: a sink is its profile */
  const gm_services *services;
  live_part *parts[GM__RECORDER_BUFFERS];
} live_profile;

/* ---- events ---- */

static gm_status live_reserve(const live_profile *self, live_part *part, uint32_t number) {
  const size_t size = sizeof *part->blocks;
  uint32_t capacity = part->capacity ? part->capacity : LIVE_FIRST;
  if (number < part->capacity) return GM_OK;
  while (capacity <= number) capacity *= 2; /* numbers have less than 31 bits */
  if (!gm__grow(self->services, &part->blocks, part->capacity * size, capacity * size))
    return GM_ERR_OUT_OF_HOST_MEMORY;
  part->capacity = capacity;
  return GM_OK;
}

static gm_status live_alloc(const live_profile *self, live_part *part, const gm__event *event) {
  gm_status status = live_reserve(self, part, event->number);
  if (!status) status = gm__profile_map_add(&part->sizes, event->bytes, 1);
  if (!status && event->stream) status = gm__map_insert(&part->streams, event->stream, 0);
  if (status) return status;
  part->blocks[event->number] = (live_block){event->now, event->bytes, event->stream};
  part->tally.figures.events++;
  gm__profile_tally_alloc(&part->tally, event->bytes);
  return GM_OK;
}

static gm_status live_free(live_part *part, const gm__event *event) {
  live_block *block = event->number < part->capacity ? &part->blocks[event->number] : NULL;
  if (!block || !block->born) return GM_OK;
  const gm_status status = event->stream ? gm__map_insert(&part->streams, event->stream, 0) : GM_OK;
  part->tally.figures.events++;
  gm__profile_tally_free(&part->tally, block->bytes, event->now - block->born, event->stream != block->stream);
  block->born = 0;
  return status;
}

/* Reads the chunk in memory, which is all there is: nothing goes to a file. */
static gm_status live_fold(const live_profile *self, live_part *part, gm__event_buffer *events) {
  gm__event_reader *reader = &part->reader;
  gm_status status = GM_OK;
  *reader = (gm__event_reader){.events = events, .at = 1, .stream = reader->stream, .event = {.now = part->last}};
  while (!gm__event_reader_next(reader, NULL) && reader->event.now) {
    const gm__event *event = &reader->event;
    part->last = event->now;
    if (status || event->label) continue; /* a failure has spoilt the sums; the rest is read for its numbers */
    status = event->bytes ? live_alloc(self, part, event) : live_free(part, event);
  }
  events->used = 1;
  return status;
}

static live_part *live_part_of(live_profile *self, uint32_t number) {
  if (self->parts[number]) return self->parts[number];
  live_part *part = gm__alloc(self->services, sizeof *part);
  if (!part) return NULL;
  gm__map_init(&part->sizes, self->services);
  gm__map_init(&part->streams, self->services);
  self->parts[number] = part;
  return part;
}

static gm_status live_take(gm__recorder_sink *sink, gm__event_buffer *events) {
  live_profile *self = (live_profile *)sink;
  live_part *part = live_part_of(self, events->number);
  return part ? live_fold(self, part, events) : GM_ERR_OUT_OF_HOST_MEMORY;
}

/* ---- beginning and end ---- */

static void live_end(gm__recorder_sink *sink) {
  live_profile *self = (live_profile *)sink;
  for (uint32_t i = 0; i < GM__RECORDER_BUFFERS; i++) {
    live_part *part = self->parts[i];
    if (!part) continue;
    gm__map_clear(&part->sizes);
    gm__map_clear(&part->streams);
    gm__release(self->services, part->blocks, part->capacity * sizeof *part->blocks);
    gm__release(self->services, part, sizeof *part);
  }
  gm__release(self->services, self, sizeof *self);
}

gm_status gm__live_profile_open(const gm_services *services, gm__recorder **out, gm_error *err) {
  live_profile *self = gm__alloc(services, sizeof *self);
  if (!self) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_pool_profile_begin", "no host memory for a profile");
  self->sink = (gm__recorder_sink){.take = live_take, .end = live_end};
  self->services = services;
  return gm__recorder_open_sink(services, &self->sink, out, err);
}

/* ---- sums ---- */

void gm__profile_sum_begin(gm__profile_sum *sum, const gm_services *services) {
  *sum = (gm__profile_sum){.figures = {.struct_size = sizeof sum->figures}};
  gm__map_init(&sum->allocs, services);
  gm__map_init(&sum->live, services);
  gm__map_init(&sum->streams, services);
}

void gm__profile_sum_end(gm__profile_sum *sum) {
  gm__map_clear(&sum->allocs);
  gm__map_clear(&sum->live);
  gm__map_clear(&sum->streams);
}

/* Adds each entry of `from` to `to`. */
static gm_status sum_map(gm__map *to, const gm__map *from) {
  size_t cursor = 0;
  uint64_t key, value;
  gm_status status = GM_OK;
  while (!status && gm__map_next(from, &cursor, &key, &value)) status = gm__profile_map_add(to, key, value);
  return status;
}

/* Peaks of several parts need not have been at one time: their sum is an upper bound. */
static void sum_figures(gm_trace_profile *sum, const live_part *part) {
  const gm_trace_profile *more = &part->tally.figures;
  sum->events += more->events;
  sum->allocs += more->allocs;
  sum->frees += more->frees;
  sum->total_bytes = gm__add_sat(sum->total_bytes, more->total_bytes);
  sum->peak_live_bytes += more->peak_live_bytes;
  sum->peak_live_blocks += more->peak_live_blocks;
  sum->end_live_bytes += part->tally.live_bytes;
  sum->end_live_blocks += part->tally.live_blocks;
  sum->small_allocs += more->small_allocs;
  sum->brief_allocs += more->brief_allocs;
  sum->moved_frees += more->moved_frees;
  for (int i = 0; i < GM_TRACE_CLASSES; i++) {
    sum->class_peak_blocks[i] += more->class_peak_blocks[i];
    sum->class_largest_bytes[i] = gm__max(sum->class_largest_bytes[i], more->class_largest_bytes[i]);
  }
}

gm_status gm__live_profile_add(gm__recorder *recorder, gm__event_buffer *events, gm__profile_sum *sum) {
  const live_profile *self = (const live_profile *)recorder->sink;
  if (!events) return GM_OK;
  gm__recorder_spill(recorder, events);
  const live_part *part = self->parts[events->number];
  if (!part) return GM_OK; /* the recorder says that it has failed */
  gm_status status = sum_map(&sum->allocs, &part->sizes);
  if (!status) status = sum_map(&sum->streams, &part->streams);
  for (uint32_t i = 0; !status && i < part->capacity; i++) {
    if (part->blocks[i].born) status = gm__profile_map_add(&sum->live, part->blocks[i].bytes, 1);
  }
  sum_figures(&sum->figures, part);
  return status;
}
