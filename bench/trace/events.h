/* A trace in memory, as plain as a loop over it can have it. */
#ifndef GM_BENCH_EVENTS_H
#define GM_BENCH_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bench_event {
  uint64_t bytes;
  uint32_t slot;        /* number of the allocation, from 0 */
  uint32_t stream : 12; /* where it was issued, up to GM_TRACE_STREAM_MAX */
  uint32_t home : 12;   /* where it was allocated */
  uint32_t is_free : 1;
} bench_event;

typedef struct bench_events {
  bench_event *list;
  size_t count;
  size_t *allocs; /* by slot: where in `list` it is allocated */
  uint32_t slots;
  uint64_t peak_live;
} bench_events;

/* 0; else -1 with the reason on standard error. Freed with bench_events_free, also after a failure. */
int bench_events_read(const char *path, bench_events *out);

void bench_events_free(bench_events *events);

#endif
