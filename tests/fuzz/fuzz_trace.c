/* Any bytes as a trace: what is read must be consistent, whatever fails must say why, and nothing may leak or grow
 * without bound. */
#include <string.h>

#include "core/trace/trace_reader.h"
#include "fuzz/fuzz.h"
#include "support/counted_services.h"

typedef struct seen {
  uint64_t events, live, last_id, last_line;
} seen;

static void check_event(const gm_trace_event *event, seen *so_far) {
  fuzz_require(event->line > so_far->last_line && event->stream <= GM_TRACE_STREAM_MAX);
  fuzz_require((event->kind == GM_TRACE_MARK) == (event->label != NULL));
  so_far->last_line = event->line;
  so_far->events++;
  if (event->kind == GM_TRACE_ALLOC) {
    fuzz_require(event->bytes > 0 && (so_far->last_id == 0 || event->id > so_far->last_id));
    so_far->last_id = event->id;
    so_far->live++;
  } else if (event->kind == GM_TRACE_FREE) {
    fuzz_require(event->bytes > 0 && so_far->live > 0 && event->id <= so_far->last_id);
    so_far->live--;
  } else {
    fuzz_require(event->label[0] && strlen(event->label) <= GM_TRACE_LINE_MAX);
  }
}

static gm_status read_all(gm_trace *trace, seen *so_far, gm_error *err) {
  gm_trace_event event = {.struct_size = sizeof event};
  for (;;) {
    gm_status status = gm_trace_next(trace, &event, err);
    if (status != GM_OK || event.kind == GM_TRACE_END) return status;
    check_event(&event, so_far);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  counted_services counted;
  counted_services_init(&counted);
  gm_trace *trace = NULL;
  gm_error err = {0}, again = {0};
  seen so_far = {0};
  gm_status status = gm__trace_open_memory(&counted.services, bytes, length, "fuzz", &trace, &err);
  fuzz_require((status == GM_OK) == (trace != NULL));
  if (trace) {
    status = read_all(trace, &so_far, &err);
    fuzz_require(read_all(trace, &so_far, &again) == status && strcmp(err.message, again.message) == 0);
  }
  fuzz_require(status == GM_OK || (err.status == status && err.message[0]));
  /* Two windows, zlib's, and the live allocations. */
  fuzz_require(counted.peak_bytes <= 256 * 1024 + 200 * so_far.events);
  gm_trace_close(trace);
  fuzz_require(counted.live_bytes == 0 && counted.wrong_releases == 0);
  return 0;
}
