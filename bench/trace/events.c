#include "bench/trace/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gm/trace.h"

typedef struct events_reader {
  bench_events *out;
  uint64_t *ids; /* of the allocations, rising */
  uint64_t live;
} events_reader;

/* Room for one more of `count` items, which grow by doubling. */
static void *events_grow(void *list, size_t count, size_t item_bytes) {
  if (count & (count - 1)) return list; /* full at powers of two alone */
  void *larger = realloc(list, (count ? 2 * count : 1) * item_bytes);
  if (larger) return larger;
  fprintf(stderr, "gm_bench: out of memory\n");
  exit(1);
}

/* The reader of gm has checked that the id is there. */
static uint32_t events_slot(const events_reader *reader, uint64_t id) {
  uint32_t low = 0, high = reader->out->slots;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    *(reader->ids[middle] <= id ? &low : &high) = middle;
  }
  return low;
}

static void events_add_alloc(events_reader *reader, const gm_trace_event *event) {
  bench_events *out = reader->out;
  reader->ids = events_grow(reader->ids, out->slots, sizeof *reader->ids);
  out->allocs = events_grow(out->allocs, out->slots, sizeof *out->allocs);
  reader->ids[out->slots] = event->id;
  out->allocs[out->slots++] = out->count;
  reader->live += event->bytes;
  if (reader->live > out->peak_live) out->peak_live = reader->live;
}

static void events_add(events_reader *reader, const gm_trace_event *event) {
  bench_events *out = reader->out;
  if (event->kind == GM_TRACE_MARK) return;
  bool is_free = event->kind == GM_TRACE_FREE;
  out->list = events_grow(out->list, out->count, sizeof *out->list);
  uint32_t stream = event->stream & GM_TRACE_STREAM_MAX, home = stream;
  uint32_t slot = out->slots;
  if (is_free) {
    slot = events_slot(reader, event->id);
    home = out->list[out->allocs[slot]].stream;
    reader->live -= event->bytes;
  } else {
    events_add_alloc(reader, event);
  }
  out->list[out->count++] = (bench_event){event->bytes, slot, stream & 0xfff, home & 0xfff, is_free};
}

int bench_events_read(const char *path, bench_events *out) {
  *out = (bench_events){.count = 0};
  events_reader reader = {.out = out};
  gm_trace *trace = NULL;
  gm_error err = {.status = GM_OK};
  gm_status status = gm_trace_open(NULL, path, &trace, &err);
  gm_trace_event event = {.struct_size = sizeof event};
  while (status == GM_OK) {
    status = gm_trace_next(trace, &event, &err);
    if (status != GM_OK || event.kind == GM_TRACE_END) break;
    events_add(&reader, &event);
  }
  gm_trace_close(trace);
  free(reader.ids);
  if (status != GM_OK) fprintf(stderr, "gm_bench: %s\n", err.message);
  return status == GM_OK ? 0 : -1;
}

void bench_events_free(bench_events *events) {
  free(events->list);
  free(events->allocs);
  *events = (bench_events){.count = 0};
}
