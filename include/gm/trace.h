/* Allocation traces: recorded streams of allocations and frees, read one event at a time (F58). The format,
 * `gmtrace 1`, is described in bench/traces/README.md. */
#ifndef GM_TRACE_H
#define GM_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "gm/services.h"
#include "gm/status.h"

GM_BEGIN_DECLS

enum {
  GM_TRACE_LINE_MAX = 4095,  /* bytes of a line without its newline */
  GM_TRACE_STREAM_MAX = 4095 /* highest stream number */
};

/* One file being read. Memory: a window of 64 KiB, and what is allocated and not yet freed in the trace. Not
 * thread-safe. */
typedef struct gm_trace gm_trace;

typedef enum gm_trace_kind {
  GM_TRACE_ALLOC = 0,
  GM_TRACE_FREE = 1,
  GM_TRACE_MARK = 2,
  GM_TRACE_END = 3 /* no further event; what is still live is not freed by the trace */
} gm_trace_kind;

typedef struct gm_trace_event {
  uint32_t struct_size; /* set by the caller: sizeof(gm_trace_event) */
  gm_trace_kind kind;
  uint32_t stream;   /* ALLOC, FREE: where it was issued; 0 is the default stream */
  bool has_stream;   /* FREE: the line named the stream; else it is the allocation's */
  uint64_t id;       /* ALLOC: higher than every one before; FREE: of a live allocation */
  uint64_t bytes;    /* ALLOC: what was asked for, > 0; FREE: the same, of that allocation */
  uint64_t line;     /* in the file, from 1 */
  const char *label; /* MARK: borrowed until the next call; else NULL */
} gm_trace_event;

/* Open a trace, plain or gzip (told by its first bytes), and check its first line. `services` may be NULL (malloc);
 * they are copied. The caller closes *out. GM_ERR_NOT_FOUND: nothing is there; GM_ERR_IO: no regular file, or not
 * readable; GM_ERR_FORMAT: it does not begin with "gmtrace 1"; GM_ERR_NOT_SUPPORTED: another version of the format, or
 * gzip in a build without zlib; GM_ERR_INVALID_ARGUMENT: path or out NULL, path empty; GM_ERR_OUT_OF_HOST_MEMORY. */
GM_API gm_status gm_trace_open(const gm_services *services, const char *path, gm_trace **out, gm_error *err);

/* The next event, GM_TRACE_END from the end on. GM_ERR_FORMAT, with file and line: a line that is none of the format, a
 * number over its range, an id that does not rise, a free of what is not live, a last line without newline, damaged or
 * cut gzip; GM_ERR_IO; GM_ERR_OUT_OF_HOST_MEMORY; GM_ERR_INVALID_ARGUMENT: an argument is NULL or struct_size is none
 * that gm knows. After any but the last of these every further call answers the same failure. */
GM_API gm_status gm_trace_next(gm_trace *trace, gm_trace_event *out, gm_error *err);

/* Close it. NULL is harmless. */
GM_API void gm_trace_close(gm_trace *trace);

/* What a recording of a pool became (gm/record.h). */
typedef struct gm_recording {
  uint32_t struct_size;   /* set by the caller: sizeof(gm_recording) */
  uint32_t streams;       /* numbers of streams that the trace uses, with 0 */
  uint64_t allocs, frees; /* events of the trace */
  uint64_t marks;
  uint64_t already_alive; /* of the allocations: blocks that were out when it began */
  uint64_t file_bytes;
} gm_recording;

GM_END_DECLS

#endif
