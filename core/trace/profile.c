#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/trace/profile_tally.h"
#include "core/trace/trace_reader.h"

/* One pass over a trace. Invariants: `born` has each live block, with the number of its allocation among the events.
 * `places` has its stream, and the marks before it. Only the end tells which
 * blocks are never freed, so growth is added up there. */

enum { PROFILE_STREAM_BITS = 12 };

_Static_assert(GM_TRACE_STREAM_MAX < 1 << PROFILE_STREAM_BITS, "beside it more marks than a file can have");

typedef struct profile {
  gm_trace *trace;
  gm__profile_tally tally;
  gm__map born;   /* live id → number of the event */
  gm__map places; /* live id → marks before it << PROFILE_STREAM_BITS | stream */
  gm__map sizes;  /* every size asked for */
  bool sets_up;   /* the first mark says that what follows is meant to stay */
} profile;

static gm_status profile_alloc(profile *self, const gm_trace_event *event) {
  gm_trace_profile *out = &self->tally.figures;
  gm__profile_tally_alloc(&self->tally, event->bytes);
  out->repeats += gm__map_find(&self->sizes, event->bytes, NULL);
  out->streams = gm__max(out->streams, (uint64_t)event->stream + 1);
  gm_status status = gm__map_insert(&self->sizes, event->bytes, 0);
  if (!status) status = gm__map_insert(&self->places, event->id, out->marks << PROFILE_STREAM_BITS | event->stream);
  return status ? status : gm__map_insert(&self->born, event->id, out->events);
}

static void profile_free(profile *self, const gm_trace_event *event) {
  uint64_t born = 0, place = 0;
  gm__map_remove(&self->born, event->id, &born);
  gm__map_remove(&self->places, event->id, &place);
  const bool moved = event->stream != (place & ((1 << PROFILE_STREAM_BITS) - 1));
  gm__profile_tally_free(&self->tally, event->bytes, self->tally.figures.events - born, moved);
}

static void profile_mark(profile *self, const char *label) {
  if (self->tally.figures.marks++ == 0) self->sets_up = strcmp(label, "params") == 0 || strcmp(label, "start") == 0;
}

static gm_status profile_event(profile *self, const gm_trace_event *event) {
  gm_status status = GM_OK;
  self->tally.figures.events++;
  if (event->kind == GM_TRACE_MARK) profile_mark(self, event->label);
  if (event->kind == GM_TRACE_FREE) profile_free(self, event);
  if (event->kind == GM_TRACE_ALLOC) status = profile_alloc(self, event);
  return status;
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
    if (marks <= self->sets_up || marks >= self->tally.figures.marks) continue;
    gm__map_find(&self->trace->bytes, id, &size);
    status = gm__profile_map_add(&blocks, marks, 1);
    if (!status) status = gm__profile_map_add(&bytes, marks, size);
  }
  for (cursor = 0; !status && gm__map_next(&blocks, &cursor, &id, &count);) {
    self->tally.figures.growth_times += count > GM_ADVICE_GROWTH_BLOCKS;
    if (count <= self->tally.figures.growth_blocks) continue;
    self->tally.figures.growth_blocks = count;
    gm__map_find(&bytes, id, &self->tally.figures.growth_bytes);
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
  self->tally.figures.end_live_blocks = self->tally.live_blocks;
  self->tally.figures.end_live_bytes = self->tally.live_bytes;
  self->tally.figures.distinct_sizes = self->sizes.count;
  if (!memory) memory = profile_growth(self);
  if (!memory) return GM_OK;
  return gm__fail(err, memory, "gm_trace_profile_read", "%s: too long for this host's memory", self->trace->path);
}

gm_status gm_trace_profile_read(const gm_services *services, const char *path, gm_trace_profile *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_trace_profile_read";
  profile self = {.tally.figures.struct_size = sizeof self.tally.figures};
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
  if (!status) gm__sized_out(out, &self.tally.figures, sizeof self.tally.figures);
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
