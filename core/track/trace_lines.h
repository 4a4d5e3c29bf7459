/* The lines of a trace. Externally synchronised. */
#ifndef GM_CORE_TRACK_TRACE_LINES_H
#define GM_CORE_TRACK_TRACE_LINES_H

#include "core/track/trace_input.h"

typedef struct gm__trace_lines {
  gm__trace_input input;
  char *window; /* GM__TRACE_CHUNK_BYTES */
  size_t from, to;
  uint64_t number; /* of the line given last, from 1 */
} gm__trace_lines;

/* As gm__trace_input_open. */
gm_status gm__trace_lines_open(const gm_services *services, const char *path, const void *memory, uint64_t length,
                               gm__trace_lines *out, gm_error *err);

/* The next line, its newline replaced by NUL, in the window until the next call; NULL at the end. GM_ERR_FORMAT: longer
 * than GM_TRACE_LINE_MAX, a control character in it, or no newline at its end. */
gm_status gm__trace_lines_next(gm__trace_lines *lines, const char **out, gm_error *err);

/* "PATH:LINE: text" as GM_ERR_FORMAT; of line 1, which is the head, that the file is no trace. */
gm_status gm__trace_lines_fail(const gm__trace_lines *lines, gm_error *err, const char *format, ...) GM_PRINTF(3, 4);

void gm__trace_lines_close(gm__trace_lines *lines);

#endif
