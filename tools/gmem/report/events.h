/* The events of a recording as columns, for reports. They are read once; blocks, marks and tags have numbers from 0.
 * Not thread-safe while it is filled. */
#ifndef GM_TOOLS_GMEM_REPORT_EVENTS_H
#define GM_TOOLS_GMEM_REPORT_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gm/status.h"

typedef enum report_kind { REPORT_ALLOC = 0, REPORT_FREE = 1, REPORT_MARK = 2 } report_kind;

#define REPORT_NEVER UINT32_MAX /* the death of a block that lives at the end */

/* Sums of bytes stay exact in a JSON number, which is a double. */
#define REPORT_MOST_BYTES ((uint64_t)1 << 53)

/* A column that the recording does not have is NULL: each of its values is then 0. */
typedef struct report_events {
  /* Events, in their order. */
  uint32_t count;
  uint8_t *kind;      /* report_kind */
  uint32_t *number;   /* of the block, or of the mark */
  uint16_t *stream;   /* on which it was allocated or freed; of a mark 0 */
  uint32_t *thread;   /* NULL, or of the program */
  uint64_t *time;     /* NULL, or nanoseconds since the first event, never less than the event before */
  uint64_t *reserved; /* NULL, or the bytes that the pool holds after the event */

  /* Blocks, in the order of their allocations. Each has one ALLOC event, and a FREE event unless it lives at the end.
   */
  uint32_t blocks;
  uint64_t *bytes; /* > 0 */
  uint32_t *born;  /* the event */
  uint32_t *died;  /* the event, or REPORT_NEVER */
  uint32_t *tag;   /* NULL, or the number of its tag */

  /* Marks, in their order. The texts come from a file: bytes that are no text, or hostile, may be among them. */
  uint32_t marks;
  uint32_t *mark_event;
  char **label; /* owned */

  uint32_t tags;
  char **tag_name; /* owned */

  /* The range: events before it were left out. Blocks that were alive then stand in front, as ALLOC events. */
  uint32_t before;  /* events of the recording that come before the range */
  uint32_t carried; /* the first events of these columns, which stand for blocks that the range found alive */

  /* Figures of these columns. */
  uint32_t streams;    /* highest stream number + 1; 1 for an empty recording */
  uint64_t peak_bytes; /* most bytes that were alive at once */
  uint32_t peak_event; /* the first event after which they were; 0 for an empty recording */
  uint64_t end_bytes;  /* alive after the last event */
  uint32_t end_blocks;
} report_events;

/* Where the range begins and ends. Each is the number of an event, from 0 (marks count), or the label of a mark.
 * Several marks of one label: the first. NULL: the begin, or the end, of the recording. The range ends before the event
 * `to`. */
typedef struct report_range {
  const char *from, *to;
} report_range;

/* Reads the recording `path`, a `gmtrace 1` file, plain or gzip. Freed with report_events_free, also after a failure.
 * Errors: those of gm_trace_open and gm_trace_next. FORMAT: more than REPORT_MOST_BYTES live at once, or 2^32 - 1
 * events or more. OUT_OF_HOST_MEMORY. INVALID_ARGUMENT: the range begins or ends nowhere, or ends before its begin. */
gm_status report_events_read(const char *path, const report_range *range, report_events *out, gm_error *err);

void report_events_free(report_events *events);

#endif
