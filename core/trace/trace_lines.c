/* Invariants: window[from, to) is what was read and not yet given. A line is given whole or not at all. So a file that
 * was cut inside a number is never read as a smaller number. */
#include "core/trace/trace_lines.h"

#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "gm/trace.h"

gm_status gm__trace_lines_fail(const gm__trace_lines *lines, gm_error *err, const char *format, ...) {
  char text[200];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return gm__fail(err, GM_ERR_FORMAT, "gm_trace_next", "%.250s:%llu: %s%s", lines->input.path,
                  (unsigned long long)lines->number, lines->number == 1 ? "is no gmtrace file: " : "", text);
}

/* Moves what is left to the front, and reads more behind it. *out_more false: the file has ended. */
static gm_status lines_fill(gm__trace_lines *lines, bool *out_more, gm_error *err) {
  size_t left = lines->to - lines->from, bytes = 0;
  if (lines->from && left) memmove(lines->window, lines->window + lines->from, left);
  lines->from = 0;
  lines->to = left;
  gm_status status =
      gm__trace_input_read(&lines->input, lines->window + left, GM__TRACE_CHUNK_BYTES - left, &bytes, err);
  lines->to = left + bytes;
  *out_more = bytes > 0;
  return status;
}

static gm_status lines_check(const gm__trace_lines *lines, const char *line, size_t length, gm_error *err) {
  if (length > GM_TRACE_LINE_MAX) return gm__trace_lines_fail(lines, err, "longer than %d bytes", GM_TRACE_LINE_MAX);
  for (size_t i = 0; i < length; i++) {
    unsigned char c = (unsigned char)line[i];
    if (c < ' ' || c == 0x7f) return gm__trace_lines_fail(lines, err, "byte 0x%02x in column %zu, not text", c, i + 1);
  }
  return GM_OK;
}

/* Gives the line that ends at `end`. NULL: the line is too long, or the file was cut, and the call fails. */
static gm_status lines_take(gm__trace_lines *lines, char *end, const char **out, gm_error *err) {
  char *line = lines->window + lines->from;
  size_t length = (size_t)((end ? end : lines->window + lines->to) - line);
  lines->number++;
  gm_status status = lines_check(lines, line, length, err);
  if (status != GM_OK) return status;
  if (!end) return gm__trace_lines_fail(lines, err, "ends without a newline: the file was cut");
  *end = '\0';
  lines->from += length + 1;
  *out = line;
  return GM_OK;
}

gm_status gm__trace_lines_next(gm__trace_lines *lines, const char **out, gm_error *err) {
  for (bool more = true;;) {
    char *line = lines->window + lines->from;
    size_t left = lines->to - lines->from;
    char *end = left ? memchr(line, '\n', left) : NULL;
    if (end || left > GM_TRACE_LINE_MAX || (!more && left)) return lines_take(lines, end, out, err);
    if (!more) break;
    gm_status status = lines_fill(lines, &more, err);
    if (status != GM_OK) return status;
  }
  *out = NULL;
  return GM_OK;
}

gm_status gm__trace_lines_open(const gm_services *services, const char *path, const void *memory, uint64_t length,
                               gm__trace_lines *out, gm_error *err) {
  gm__trace_lines lines = {.window = gm__alloc(services, GM__TRACE_CHUNK_BYTES)};
  if (!lines.window) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_trace_open", "%.300s: no host memory to read it", path);
  }
  gm_status status = gm__trace_input_open(services, path, memory, length, &lines.input, err);
  if (status == GM_OK) {
    *out = lines;
  } else {
    gm__release(services, lines.window, GM__TRACE_CHUNK_BYTES);
  }
  return status;
}

void gm__trace_lines_close(gm__trace_lines *lines) {
  gm__release(lines->input.services, lines->window, GM__TRACE_CHUNK_BYTES);
  lines->window = NULL;
  gm__trace_input_close(&lines->input);
}
