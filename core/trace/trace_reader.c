/* Invariants. `bytes` holds exactly the ids that were allocated and not freed; `streams` holds those of them whose
 * stream is not 0. Ids rise strictly. So an id that is not live and not above `last_id` was freed, or was never there.
 * Memory follows the live allocations, not the length of the trace. The first failure stays. */
#include "core/trace/trace_reader.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/decimal.h"
#include "core/base/error.h"
#include "core/base/sized.h"

/* ---- fields of a line ---- */

/* Reads the number after one blank at *at, and moves *at behind it. */
static gm_status reader_number(gm_trace *trace, const char **at, const char *what, uint64_t *out, gm_error *err) {
  const char *text = *at, *end = NULL;
  if (*text != ' ') return gm__trace_lines_fail(&trace->lines, err, "%s is missing", what);
  text++;
  if (*text < '0' || *text > '9') {
    return gm__trace_lines_fail(&trace->lines, err, "%s is no number: \"%.40s\"", what, text);
  }
  if (!gm__decimal(text, &end, out)) {
    return gm__trace_lines_fail(&trace->lines, err, "%s is over 2^64-1: \"%.40s\"", what, text);
  }
  if (*end && *end != ' ') {
    return gm__trace_lines_fail(&trace->lines, err, "%s is no number: \"%.40s\"", what, text);
  }
  *at = end;
  return GM_OK;
}

static gm_status reader_stream(gm_trace *trace, const char **at, uint32_t *out, gm_error *err) {
  uint64_t stream = 0;
  gm_status status = reader_number(trace, at, "the stream", &stream, err);
  if (status != GM_OK) return status;
  if (stream > GM_TRACE_STREAM_MAX) {
    return gm__trace_lines_fail(&trace->lines, err, "stream %llu is over %d", (unsigned long long)stream,
                                GM_TRACE_STREAM_MAX);
  }
  *out = (uint32_t)stream;
  return GM_OK;
}

static gm_status reader_end(gm_trace *trace, const char *at, gm_error *err) {
  if (!*at) return GM_OK;
  return gm__trace_lines_fail(&trace->lines, err, "something behind the last field: \"%.40s\"", at);
}

/* ---- allocations ---- */

static gm_status reader_check_alloc(gm_trace *trace, const gm_trace_event *event, gm_error *err) {
  if (event->bytes == 0) return gm__trace_lines_fail(&trace->lines, err, "an allocation of 0 bytes");
  if (!trace->any_id || event->id > trace->last_id) return GM_OK;
  return gm__trace_lines_fail(&trace->lines, err, "id %llu does not rise, the one before is %llu",
                              (unsigned long long)event->id, (unsigned long long)trace->last_id);
}

static gm_status reader_born(gm_trace *trace, const gm_trace_event *event, gm_error *err) {
  gm_status status = gm__map_insert(&trace->bytes, event->id, event->bytes);
  if (status == GM_OK && event->stream) status = gm__map_insert(&trace->streams, event->id, event->stream);
  if (status != GM_OK) {
    return gm__fail(err, status, "gm_trace_next", "%.300s: no host memory for %zu live allocations", trace->path,
                    trace->bytes.count);
  }
  trace->any_id = true;
  trace->last_id = event->id;
  return GM_OK;
}

static gm_status reader_alloc(gm_trace *trace, const char *at, gm_trace_event *event, gm_error *err) {
  event->kind = GM_TRACE_ALLOC;
  gm_status status = reader_number(trace, &at, "the id", &event->id, err);
  if (status == GM_OK) status = reader_number(trace, &at, "the size", &event->bytes, err);
  if (status == GM_OK) status = reader_stream(trace, &at, &event->stream, err);
  if (status == GM_OK) status = reader_end(trace, at, err);
  if (status == GM_OK) status = reader_check_alloc(trace, event, err);
  return status == GM_OK ? reader_born(trace, event, err) : status;
}

/* ---- frees ---- */

static gm_status reader_fail_free(gm_trace *trace, uint64_t id, gm_error *err) {
  bool later = !trace->any_id || id > trace->last_id;
  return gm__trace_lines_fail(&trace->lines, err, "a free of id %llu, which %s", (unsigned long long)id,
                              later ? "is not allocated yet" : "was freed before or never allocated");
}

static gm_status reader_free(gm_trace *trace, const char *at, gm_trace_event *event, gm_error *err) {
  event->kind = GM_TRACE_FREE;
  gm_status status = reader_number(trace, &at, "the id", &event->id, err);
  event->has_stream = *at != '\0';
  if (status == GM_OK && event->has_stream) status = reader_stream(trace, &at, &event->stream, err);
  if (status == GM_OK) status = reader_end(trace, at, err);
  if (status != GM_OK) return status;
  if (!gm__map_remove(&trace->bytes, event->id, &event->bytes)) return reader_fail_free(trace, event->id, err);
  uint64_t stream = 0;
  gm__map_remove(&trace->streams, event->id, &stream);
  if (!event->has_stream) event->stream = (uint32_t)stream;
  return GM_OK;
}

/* ---- events ---- */

static gm_status reader_mark(gm_trace *trace, const char *at, gm_trace_event *event, gm_error *err) {
  event->kind = GM_TRACE_MARK;
  if (at[0] != ' ' || !at[1]) return gm__trace_lines_fail(&trace->lines, err, "the label of the mark is missing");
  event->label = at + 1;
  return GM_OK;
}

static gm_status reader_line(gm_trace *trace, const char *line, gm_trace_event *event, gm_error *err) {
  event->line = trace->lines.number;
  switch (line[0]) {
    case 'a': return reader_alloc(trace, line + 1, event, err);
    case 'f': return reader_free(trace, line + 1, event, err);
    case 'm': return reader_mark(trace, line + 1, event, err);
    default: return gm__trace_lines_fail(&trace->lines, err, "neither a, f, m nor a comment: \"%.40s\"", line);
  }
}

static gm_status reader_event(gm_trace *trace, gm_trace_event *event, gm_error *err) {
  const char *line = NULL;
  do {
    gm_status status = gm__trace_lines_next(&trace->lines, &line, err);
    if (status != GM_OK) return status;
  } while (line && line[0] == '#');
  if (line) return reader_line(trace, line, event, err);
  event->kind = GM_TRACE_END;
  event->line = trace->lines.number;
  return GM_OK;
}

gm_status gm_trace_next(gm_trace *trace, gm_trace_event *out, gm_error *err) {
  GM__UNCANCELLED();
  if (!trace) return gm__bad_argument(err, "gm_trace_next", "`trace` is NULL");
  const gm_status status = gm__sized_check(out, sizeof *out, "gm_trace_next", "out", err);
  if (status) return status;
  gm_trace_event event = {.struct_size = sizeof event};
  if (trace->failure.status == GM_OK) reader_event(trace, &event, &trace->failure);
  if (trace->failure.status == GM_OK) {
    gm__sized_out(out, &event, sizeof event);
  } else if (err) {
    *err = trace->failure;
  }
  return trace->failure.status;
}

/* ---- opening ---- */

static gm_status reader_header(gm_trace *trace, gm_error *err) {
  static const char word[] = "gmtrace ";
  const char *line = NULL, *end = NULL;
  uint64_t version = 0;
  gm_status status = gm__trace_lines_next(&trace->lines, &line, err);
  if (status != GM_OK) return status;
  if (!line) return gm__trace_lines_fail(&trace->lines, err, "is empty, a trace begins with \"gmtrace 1\"");
  if (strcmp(line, "gmtrace 1") == 0) return GM_OK;
  if (strncmp(line, word, sizeof word - 1) == 0 && gm__decimal(line + sizeof word - 1, &end, &version) && !*end) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_trace_open", "%.300s: format %llu is not known, only 1", trace->path,
                    (unsigned long long)version);
  }
  return gm__trace_lines_fail(&trace->lines, err, "begins with \"%.40s\", not with \"gmtrace 1\"", line);
}

static gm_status reader_begin(gm_trace *trace, const char *path, const void *memory, uint64_t length, gm_error *err) {
  trace->path_bytes = strlen(path) + 1;
  trace->path = gm__alloc(&trace->services, trace->path_bytes);
  if (!trace->path) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_trace_open", "no host memory for a path");
  memcpy(trace->path, path, trace->path_bytes);
  gm__map_init(&trace->bytes, &trace->services);
  gm__map_init(&trace->streams, &trace->services);
  gm_status status = gm__trace_lines_open(&trace->services, trace->path, memory, length, &trace->lines, err);
  return status == GM_OK ? reader_header(trace, err) : status;
}

static gm_status reader_open(const gm_services *services, const char *path, const void *memory, uint64_t length,
                             gm_trace **out, gm_error *err) {
  gm_trace *trace = gm__alloc(services, sizeof *trace);
  if (!trace) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_trace_open", "no host memory for a trace");
  trace->services = services ? *services : *gm__default_services();
  gm_status status = reader_begin(trace, path, memory, length, err);
  if (status == GM_OK) {
    *out = trace;
  } else {
    gm_trace_close(trace);
  }
  return status;
}

gm_status gm__trace_open_memory(const gm_services *services, const void *bytes, uint64_t length, const char *name,
                                gm_trace **out, gm_error *err) {
  return reader_open(services, name, bytes, length, out, err);
}

gm_status gm_trace_open(const gm_services *services, const char *path, gm_trace **out, gm_error *err) {
  GM__UNCANCELLED();
  if (!path || !path[0]) return gm__bad_argument(err, "gm_trace_open", "`path` is %s", path ? "empty" : "NULL");
  if (!out) return gm__bad_argument(err, "gm_trace_open", "`out` is NULL");
  gm_status status = gm__services_check(services, err);
  return status == GM_OK ? reader_open(services, path, NULL, 0, out, err) : status;
}

void gm_trace_close(gm_trace *trace) {
  GM__UNCANCELLED();
  if (!trace) return;
  gm_services services = trace->services;
  gm__map_clear(&trace->bytes);
  gm__map_clear(&trace->streams);
  if (trace->lines.window) gm__trace_lines_close(&trace->lines);
  gm__release(&services, trace->path, trace->path_bytes);
  gm__release(&services, trace, sizeof *trace);
}
