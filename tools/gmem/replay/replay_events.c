#include "tools/gmem/replay/replay_events.h"

#include <stdio.h>
#include <stdlib.h>

#include "tools/gmem/session/block_ids.h"

static gm_status events_no_memory(const char *path, gm_error *err) {
  err->status = GM_ERR_OUT_OF_HOST_MEMORY;
  snprintf(err->message, sizeof err->message, "%.300s: too long for this host's memory", path);
  return err->status;
}

static bool events_add_id(replay_events *events, uint64_t id) {
  uint64_t *ids = events->allocs == UINT32_MAX ? NULL : list_room(events->ids, events->allocs, sizeof *events->ids);
  if (!ids) return false;
  events->ids = ids;
  events->ids[events->allocs++] = id;
  return true;
}

static bool events_add(replay_events *events, const gm_trace_event *event) {
  if (event->kind == GM_TRACE_MARK) return true;
  bool is_free = event->kind == GM_TRACE_FREE;
  if (!is_free && !events_add_id(events, event->id)) return false;
  replay_event *list = list_room(events->list, events->count, sizeof *events->list);
  if (!list) return false;
  events->list = list;
  uint32_t slot = is_free ? block_ids_find(events->ids, events->allocs, event->id) : events->allocs - 1;
  events->list[events->count++] = (replay_event){event->bytes, slot, (uint16_t)event->stream, is_free};
  if (event->stream >= events->streams) events->streams = event->stream + 1;
  return true;
}

static uint64_t events_peak(const replay_events *events) {
  uint64_t live = 0, peak = 0;
  for (size_t i = 0; i < events->count; i++) {
    const replay_event *event = &events->list[i];
    if (!event->is_free && event->bytes > UINT64_MAX - live) return UINT64_MAX;
    live = event->is_free ? live - event->bytes : live + event->bytes;
    if (live > peak) peak = live;
  }
  return peak;
}

/* Streams are numbered anew, without gaps and in their order; beyond the most they begin again at the first. */
static void events_number_streams(replay_events *events, uint32_t most) {
  uint16_t number[GM_TRACE_STREAM_MAX + 1] = {0};
  uint32_t used = 0;
  for (size_t i = 0; i < events->count; i++) number[events->list[i].stream] = 1;
  for (uint32_t i = 0; i <= GM_TRACE_STREAM_MAX; i++) {
    if (number[i]) number[i] = (uint16_t)(used++ % most);
  }
  for (size_t i = 0; i < events->count; i++) events->list[i].stream = number[events->list[i].stream];
  events->used = used ? used : 1;
  events->opened = events->used < most ? events->used : most;
}

gm_status replay_events_read(const char *path, uint32_t most_streams, replay_events *out, gm_error *err) {
  *out = (replay_events){.streams = 1};
  gm_trace *trace = NULL;
  gm_status status = gm_trace_open(NULL, path, &trace, err);
  gm_trace_event event = {.struct_size = sizeof event};
  while (status == GM_OK) {
    status = gm_trace_next(trace, &event, err);
    if (status == GM_OK && event.kind == GM_TRACE_END) break;
    if (status == GM_OK && !events_add(out, &event)) status = events_no_memory(path, err);
  }
  gm_trace_close(trace);
  out->peak_live_bytes = events_peak(out);
  events_number_streams(out, most_streams);
  return status;
}

void replay_events_free(replay_events *events) {
  free(events->list);
  free(events->ids);
  *events = (replay_events){.list = NULL};
}
