#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/trace/trace_reader.h"
#include "gm/advice.h"
#include "gm/size.h"

/* One pass over a trace. Invariants: `born` has each live block, with the number of its allocation among the events.
 * `places` has its stream, and the marks before it. `class_live` counts live blocks by class. Only the end tells which
 * blocks are never freed, so growth is added up there. */

enum { PROFILE_STREAM_BITS = 12 };

_Static_assert(GM_TRACE_STREAM_MAX < 1 << PROFILE_STREAM_BITS, "beside it more marks than a file can have");

typedef struct profile {
  gm_trace *trace;
  gm_trace_profile *out;
  gm__map born;   /* live id → number of the event */
  gm__map places; /* live id → marks before it << PROFILE_STREAM_BITS | stream */
  gm__map sizes;  /* every size asked for */
  uint64_t live_bytes, live_blocks;
  uint64_t class_live[GM_TRACE_CLASSES];
  bool sets_up; /* the first mark says that what follows is meant to stay */
} profile;

static void profile_raise(uint64_t *highest, uint64_t value) {
  if (value > *highest) *highest = value;
}

static gm_status profile_alloc(profile *self, const gm_trace_event *event) {
  gm_trace_profile *out = self->out;
  uint32_t at = gm_size_class(event->bytes);
  out->allocs++;
  out->repeats += gm__map_find(&self->sizes, event->bytes, NULL);
  out->small_allocs += event->bytes <= GM_TRACE_SMALL;
  out->total_bytes = gm__add_sat(out->total_bytes, event->bytes);
  profile_raise(&out->streams, (uint64_t)event->stream + 1);
  self->live_bytes = gm__add_sat(self->live_bytes, event->bytes);
  profile_raise(&out->peak_live_bytes, self->live_bytes);
  profile_raise(&out->peak_live_blocks, ++self->live_blocks);
  profile_raise(&out->class_peak_blocks[at], ++self->class_live[at]);
  profile_raise(&out->class_largest_bytes[at], event->bytes);
  gm_status status = gm__map_insert(&self->sizes, event->bytes, 0);
  if (!status) status = gm__map_insert(&self->places, event->id, out->marks << PROFILE_STREAM_BITS | event->stream);
  return status ? status : gm__map_insert(&self->born, event->id, out->events);
}

static void profile_free(profile *self, const gm_trace_event *event) {
  uint64_t born = 0, place = 0;
  self->out->frees++;
  self->live_bytes = gm__sub_sat(self->live_bytes, event->bytes); /* the sum may have been cut */
  self->live_blocks--;
  self->class_live[gm_size_class(event->bytes)]--;
  gm__map_remove(&self->born, event->id, &born);
  gm__map_remove(&self->places, event->id, &place);
  self->out->brief_allocs += self->out->events - born < GM_TRACE_BRIEF_EVENTS;
  self->out->moved_frees += event->stream != (place & ((1 << PROFILE_STREAM_BITS) - 1));
}

static void profile_mark(profile *self, const char *label) {
  if (self->out->marks++ == 0) self->sets_up = strcmp(label, "params") == 0 || strcmp(label, "start") == 0;
}

static gm_status profile_event(profile *self, const gm_trace_event *event) {
  gm_status status = GM_OK;
  self->out->events++;
  if (event->kind == GM_TRACE_MARK) profile_mark(self, event->label);
  if (event->kind == GM_TRACE_FREE) profile_free(self, event);
  if (event->kind == GM_TRACE_ALLOC) status = profile_alloc(self, event);
  return status;
}

static gm_status profile_add(gm__map *map, uint64_t key, uint64_t value) {
  uint64_t sum = 0;
  gm__map_find(map, key, &sum);
  return gm__map_insert(map, key, gm__add_sat(sum, value));
}

/* Counts blocks that were allocated between two marks and are still there. After the last mark the program is not done
 * with its blocks. */
static gm_status profile_growth(profile *self) {
  gm__map blocks, bytes;
  size_t cursor = 0;
  uint64_t id, place, count;
  gm_status status = GM_OK;
  gm__map_init(&blocks, self->born.services);
  gm__map_init(&bytes, self->born.services);
  while (!status && gm__map_next(&self->places, &cursor, &id, &place)) {
    uint64_t marks = place >> PROFILE_STREAM_BITS, size = 0;
    if (marks <= self->sets_up || marks >= self->out->marks) continue;
    gm__map_find(&self->trace->bytes, id, &size);
    status = profile_add(&blocks, marks, 1);
    if (!status) status = profile_add(&bytes, marks, size);
  }
  for (cursor = 0; !status && gm__map_next(&blocks, &cursor, &id, &count);) {
    self->out->growth_times += count > GM_ADVICE_GROWTH_BLOCKS;
    if (count <= self->out->growth_blocks) continue;
    self->out->growth_blocks = count;
    gm__map_find(&bytes, id, &self->out->growth_bytes);
  }
  gm__map_clear(&blocks);
  gm__map_clear(&bytes);
  return status;
}

static gm_status profile_run(profile *self, gm_error *err) {
  gm_trace_event event = {.struct_size = sizeof event};
  gm_status status, memory = GM_OK;
  do {
    status = gm_trace_next(self->trace, &event, err);
    if (status) return status;
    if (event.kind != GM_TRACE_END) memory = profile_event(self, &event);
  } while (!memory && event.kind != GM_TRACE_END);
  self->out->end_live_blocks = self->live_blocks;
  self->out->end_live_bytes = self->live_bytes;
  self->out->distinct_sizes = self->sizes.count;
  if (!memory) memory = profile_growth(self);
  if (!memory) return GM_OK;
  return gm__fail(err, memory, 0, "gm_trace_profile_read", "%s: too long for this host's memory", self->trace->path);
}

gm_status gm_trace_profile_read(const gm_services *services, const char *path, gm_trace_profile *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_trace_profile_read";
  gm_trace_profile made = {.struct_size = sizeof made};
  profile self = {.out = &made};
  gm_status status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (!status) status = gm_trace_open(services, path, &self.trace, err);
  if (status) return status;
  gm__map_init(&self.born, &self.trace->services);
  gm__map_init(&self.places, &self.trace->services);
  gm__map_init(&self.sizes, &self.trace->services);
  status = profile_run(&self, err);
  gm__map_clear(&self.born);
  gm__map_clear(&self.places);
  gm__map_clear(&self.sizes);
  gm_trace_close(self.trace);
  if (!status) gm__sized_out(out, &made, sizeof made);
  return status;
}

/* Writes a size as people do: in the largest unit that leaves no remainder. */
static void profile_entry(char *text, size_t capacity, uint64_t bytes, uint64_t count) {
  static const char *const units[] = {"", "K", "M", "G", "T"};
  size_t unit = 0;
  while (unit < 4 && bytes % 1024 == 0) {
    bytes /= 1024;
    unit++;
  }
  snprintf(text, capacity, "%" PRIu64 "%s:%" PRIu64, bytes, units[unit], count);
}

size_t gm_trace_profile_warm_up(const gm_trace_profile *given, char *text, size_t capacity) {
  GM__UNCANCELLED();
  size_t length = 0;
  gm_trace_profile from;
  if (!text || capacity == 0) return 0;
  text[0] = '\0';
  if (gm__sized_in(&from, sizeof from, given, "gm_trace_profile_warm_up", "profile", NULL)) return 0;
  for (int at = GM_TRACE_CLASSES - 1; at >= 0; at--) {
    char entry[64] = ",";
    if (from.class_peak_blocks[at] == 0) continue;
    profile_entry(entry + 1, sizeof entry - 1, from.class_largest_bytes[at], from.class_peak_blocks[at]);
    const char *next = length ? entry : entry + 1;
    if (length + strlen(next) >= capacity) break;
    memcpy(text + length, next, strlen(next) + 1);
    length += strlen(next);
  }
  return length;
}
