/* A trace in memory, so that reading it is no part of what is measured. */
#ifndef GM_TOOLS_GMEM_REPLAY_REPLAY_EVENTS_H
#define GM_TOOLS_GMEM_REPLAY_REPLAY_EVENTS_H

#include <stddef.h>

#include "gm/trace.h"

typedef struct replay_event {
  uint64_t bytes;
  uint32_t slot;   /* number of the allocation in the trace, from 0 */
  uint16_t stream; /* of those opened, from 0 */
  bool is_free;
} replay_event;

typedef struct replay_events {
  replay_event *list;
  size_t count;
  uint64_t *ids; /* of the allocations, rising */
  uint32_t allocs;
  uint64_t peak_live_bytes;
  uint32_t streams; /* highest stream number + 1; 1 for an empty trace */
  uint32_t used;    /* stream numbers that occur; 1 for an empty trace */
  uint32_t opened;  /* how many streams they are replayed on: `used`, or as many as there may be, and some share one */
} replay_events;

/* For a replay on at most `most_streams` streams. Errors: those of gm_trace_open and gm_trace_next. Freed with
 * replay_events_free, also after a failure. */
gm_status replay_events_read(const char *path, uint32_t most_streams, replay_events *out, gm_error *err);

void replay_events_free(replay_events *events);

#endif
