/* Invariants: a column has room for a power of two of items, and grows when its count reaches that. ids[n] is the id of
 * block n in the file, so ids rise. */
#include "tools/gmem/report/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gm/trace.h"
#include "tools/gmem/session/block_ids.h"

/* The state of a read. */
typedef struct events_reader {
  report_events *out;
  const char *path; /* borrowed */
  uint64_t *ids;    /* of the blocks */
  uint64_t live;    /* bytes */
} events_reader;

static gm_status events_fail(gm_error *err, gm_status status, const char *path, const char *why) {
  if (!err) return status;
  *err = (gm_error){.status = status};
  snprintf(err->message, sizeof err->message, "%.300s: %s", path, why);
  return status;
}

static gm_status events_no_memory(gm_error *err, const char *path) {
  return events_fail(err, GM_ERR_OUT_OF_HOST_MEMORY, path, "too long for this host's memory");
}

/* Makes room in one column; a name of a column, and its count, are what it takes. */
#define EVENTS_ROOM(column, count)                                 \
  do {                                                             \
    void *larger = list_room((column), (count), sizeof *(column)); \
    if (!larger) return false;                                     \
    (column) = larger;                                             \
  } while (0)

/* ---- one event ---- */

static bool events_add(report_events *events, report_kind kind, uint32_t number, uint32_t stream) {
  EVENTS_ROOM(events->kind, events->count);
  EVENTS_ROOM(events->number, events->count);
  EVENTS_ROOM(events->stream, events->count);
  events->kind[events->count] = (uint8_t)kind;
  events->number[events->count] = number;
  events->stream[events->count++] = (uint16_t)stream;
  return true;
}

static bool events_alloc(events_reader *reader, const gm_trace_event *event) {
  report_events *events = reader->out;
  EVENTS_ROOM(reader->ids, events->blocks);
  EVENTS_ROOM(events->bytes, events->blocks);
  EVENTS_ROOM(events->born, events->blocks);
  EVENTS_ROOM(events->died, events->blocks);
  reader->ids[events->blocks] = event->id;
  events->bytes[events->blocks] = event->bytes;
  events->born[events->blocks] = events->count;
  events->died[events->blocks] = REPORT_NEVER;
  return events_add(events, REPORT_ALLOC, events->blocks++, event->stream);
}

static bool events_free(events_reader *reader, const gm_trace_event *event) {
  report_events *events = reader->out;
  uint32_t block = block_ids_find(reader->ids, events->blocks, event->id);
  events->died[block] = events->count;
  return events_add(events, REPORT_FREE, block, event->stream);
}

static bool events_mark(report_events *events, const char *label) {
  EVENTS_ROOM(events->mark_event, events->marks);
  EVENTS_ROOM(events->label, events->marks);
  char *copy = strdup(label);
  if (!copy) return false;
  events->mark_event[events->marks] = events->count;
  events->label[events->marks] = copy;
  return events_add(events, REPORT_MARK, events->marks++, 0);
}

static gm_status events_take(events_reader *reader, const gm_trace_event *event, gm_error *err) {
  bool done = false;
  if (reader->out->count == REPORT_NEVER - 1) {
    return events_fail(err, GM_ERR_FORMAT, reader->path, "a report has fewer than 2^32 - 1 events");
  }
  switch (event->kind) {
    case GM_TRACE_ALLOC:
      if (event->bytes > REPORT_MOST_BYTES - reader->live) {
        return events_fail(err, GM_ERR_FORMAT, reader->path, "more than 8 PiB live at once");
      }
      reader->live += event->bytes;
      done = events_alloc(reader, event);
      break;
    case GM_TRACE_FREE:
      reader->live -= event->bytes;
      done = events_free(reader, event);
      break;
    default: done = events_mark(reader->out, event->label); break;
  }
  return done ? GM_OK : events_no_memory(err, reader->path);
}

static gm_status events_read_all(events_reader *reader, gm_error *err) {
  gm_trace *trace = NULL;
  gm_trace_event event = {.struct_size = sizeof event};
  gm_status status = gm_trace_open(NULL, reader->path, &trace, err);
  while (status == GM_OK) {
    status = gm_trace_next(trace, &event, err);
    if (status != GM_OK || event.kind == GM_TRACE_END) break;
    status = events_take(reader, &event, err);
  }
  gm_trace_close(trace);
  return status;
}

/* ---- the range ---- */

static gm_status events_place(const report_events *events, const char *text, uint32_t unless, uint32_t *out,
                              gm_error *err) {
  *out = unless;
  if (!text) return GM_OK;
  for (uint32_t i = 0; i < events->marks; i++) {
    if (strcmp(events->label[i], text) != 0) continue;
    *out = events->mark_event[i];
    return GM_OK;
  }
  char *end = NULL;
  unsigned long long number = text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : 0;
  if (!end || *end)
    return events_fail(err, GM_ERR_INVALID_ARGUMENT, text, "no mark has this label, and it is no number");
  if (number > events->count) return events_fail(err, GM_ERR_INVALID_ARGUMENT, text, "the recording has fewer events");
  *out = (uint32_t)number;
  return GM_OK;
}

/* Event `from` becomes event `to`, which stands before it. */
static void events_move(report_events *events, uint32_t from, uint32_t to) {
  events->kind[to] = events->kind[from];
  events->number[to] = events->number[from];
  events->stream[to] = events->stream[from];
  if (events->thread) events->thread[to] = events->thread[from];
  if (events->time) events->time[to] = events->time[from];
  if (events->reserved) events->reserved[to] = events->reserved[from];
}

/* Event `from`, an allocation, is the next that stays, and so is its block. */
static void events_keep_alloc(report_events *events, uint32_t from, uint32_t *moved) {
  uint32_t block = events->number[from];
  events_move(events, from, events->count);
  moved[block] = events->blocks;
  events->bytes[events->blocks] = events->bytes[block];
  if (events->tag) events->tag[events->blocks] = events->tag[block];
  events->born[events->blocks] = events->count;
  events->died[events->blocks] = REPORT_NEVER;
  events->number[events->count++] = events->blocks++;
}

static void events_keep_mark(report_events *events, uint32_t from) {
  uint32_t mark = events->number[from];
  events_move(events, from, events->count);
  char *label = events->label[mark];
  events->label[mark] = events->label[events->marks]; /* it is freed with the others that go */
  events->label[events->marks] = label;
  events->mark_event[events->marks] = events->count;
  events->number[events->count++] = events->marks++;
}

static void events_keep(report_events *events, uint32_t from, uint32_t *moved) {
  switch (events->kind[from]) {
    case REPORT_ALLOC: events_keep_alloc(events, from, moved); return;
    case REPORT_MARK: events_keep_mark(events, from); return;
    default: break;
  }
  uint32_t block = moved[events->number[from]];
  events_move(events, from, events->count);
  events->died[block] = events->count;
  events->number[events->count++] = block;
}

/* Leaves the events from `from` to before `to`, and in front the blocks that they find alive. `moved`: for each block.
 */
static void events_cut(report_events *events, uint32_t from, uint32_t to, uint32_t *moved) {
  uint32_t marks = events->marks;
  events->count = events->blocks = events->marks = 0;
  for (uint32_t i = 0; i < from; i++) {
    bool stays = events->kind[i] == REPORT_ALLOC && events->died[events->number[i]] >= from;
    if (stays) events_keep_alloc(events, i, moved);
  }
  events->before = from;
  events->carried = events->count;
  for (uint32_t i = from; i < to; i++) events_keep(events, i, moved);
  for (uint32_t i = events->marks; i < marks; i++) free(events->label[i]);
}

static gm_status events_limit(report_events *events, const report_range *range, const char *path, gm_error *err) {
  uint32_t from = 0, to = 0;
  gm_status status = events_place(events, range->from, 0, &from, err);
  if (status == GM_OK) status = events_place(events, range->to, events->count, &to, err);
  if (status != GM_OK) return status;
  if (to < from) return events_fail(err, GM_ERR_INVALID_ARGUMENT, path, "the range ends before its begin");
  if (from == 0 && to == events->count) return GM_OK;
  uint32_t *moved = malloc(((size_t)events->blocks + 1) * sizeof *moved);
  if (!moved) return events_no_memory(err, path);
  events_cut(events, from, to, moved);
  free(moved);
  return GM_OK;
}

/* ---- figures ---- */

static void events_sum_up(report_events *events) {
  uint64_t live = 0;
  for (uint32_t i = 0; i < events->count; i++) {
    if (events->stream[i] >= events->streams) events->streams = (uint32_t)events->stream[i] + 1;
    if (events->kind[i] == REPORT_MARK) continue;
    uint64_t bytes = events->bytes[events->number[i]];
    live = events->kind[i] == REPORT_ALLOC ? live + bytes : live - bytes;
    events->end_blocks += events->kind[i] == REPORT_ALLOC ? 1 : UINT32_MAX; /* one less, modulo 2^32 */
    if (live <= events->peak_bytes) continue;
    events->peak_bytes = live;
    events->peak_event = i;
  }
  events->end_bytes = live;
}

gm_status report_events_read(const char *path, const report_range *range, report_events *out, gm_error *err) {
  *out = (report_events){.streams = 1};
  events_reader reader = {.out = out, .path = path};
  gm_status status = events_read_all(&reader, err);
  if (status == GM_OK) status = events_limit(out, range, path, err);
  free(reader.ids);
  if (status == GM_OK) events_sum_up(out);
  return status;
}

void report_events_free(report_events *events) {
  for (uint32_t i = 0; i < events->marks; i++) free(events->label[i]);
  for (uint32_t i = 0; i < events->tags; i++) free(events->tag_name[i]);
  void *columns[] = {events->kind,     events->number, events->stream,  events->thread, events->time,
                     events->reserved, events->bytes,  events->born,    events->died,   events->mark_event,
                     events->label,    events->tag,    events->tag_name};
  for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) free(columns[i]);
  *events = (report_events){.streams = 1};
}
