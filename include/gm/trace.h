/* Allocation traces: recorded streams of allocations and frees, read one event at a time. bench/traces/README.md
 * describes the format, `gmtrace 1`. */
#ifndef GM_TRACE_H
#define GM_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "gm/services.h"
#include "gm/status.h"

GM_BEGIN_DECLS

enum {
  GM_TRACE_LINE_MAX = 4095,  /* bytes of a line, without its newline */
  GM_TRACE_STREAM_MAX = 4095 /* highest stream number */
};

/* A trace file that is being read. It takes 64 KiB of host memory, and what the trace's live blocks need. Not
 * thread-safe. */
typedef struct gm_trace gm_trace;

typedef enum gm_trace_kind {
  GM_TRACE_ALLOC = 0,
  GM_TRACE_FREE = 1,
  GM_TRACE_MARK = 2,
  GM_TRACE_END = 3 /* there is no further event; the trace does not free what still lives */
} gm_trace_kind;

typedef struct gm_trace_event {
  uint32_t struct_size; /* set by the caller: sizeof(gm_trace_event) */
  gm_trace_kind kind;
  uint32_t stream;   /* ALLOC, FREE: where it was issued; 0: the default stream */
  bool has_stream;   /* FREE: the line named the stream; else it is the allocation's stream */
  uint64_t id;       /* ALLOC: higher than every id before; FREE: the id of a live allocation */
  uint64_t bytes;    /* ALLOC: bytes asked for, > 0; FREE: the bytes of that allocation */
  uint64_t line;     /* line of the file, from 1 */
  const char *label; /* MARK: borrowed until the next call; else NULL */
} gm_trace_event;

/* Opens a trace, plain or gzip (its first bytes tell which), and checks its first line. `services` may be NULL
 * (malloc); gm copies them. The caller closes *out.
 *
 * Errors: OUT_OF_HOST_MEMORY. NOT_FOUND: there is no such file. IO: it is no regular file, or is not readable. FORMAT:
 * it does not begin with "gmtrace 1". NOT_SUPPORTED: another version of the format, or gzip in a build without zlib.
 * INVALID_ARGUMENT: `path` or `out` is NULL, or `path` is empty. */
GM_API gm_status gm_trace_open(const gm_services *services, const char *path, gm_trace **out, gm_error *err);

/* Returns the next event; at the end, GM_TRACE_END each time. FORMAT, with file and line:
 * - the line is not of the format;
 * - a number is out of range;
 * - an id does not rise;
 * - a free names no live allocation;
 * - the last line has no newline;
 * - the gzip data is damaged or cut.
 *
 * Other errors: IO, OUT_OF_HOST_MEMORY. INVALID_ARGUMENT: an argument is NULL, or gm does not know struct_size. After
 * any error except INVALID_ARGUMENT, every further call answers the same failure. */
GM_API gm_status gm_trace_next(gm_trace *trace, gm_trace_event *out, gm_error *err);

/* Closes a trace. NULL is allowed. */
GM_API void gm_trace_close(gm_trace *trace);

/* Figures of a finished recording of a pool (gm/record.h). */
typedef struct gm_recording {
  uint32_t struct_size;   /* set by the caller: sizeof(gm_recording) */
  uint32_t streams;       /* how many stream numbers the trace uses, with 0 */
  uint64_t allocs, frees; /* events of the trace */
  uint64_t marks;
  uint64_t already_alive; /* allocations of blocks that lived when it began */
  uint64_t file_bytes;
} gm_recording;

GM_END_DECLS

#endif
