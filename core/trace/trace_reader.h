/* Inside of gm_trace. Externally synchronised. */
#ifndef GM_CORE_TRACE_TRACE_READER_H
#define GM_CORE_TRACE_TRACE_READER_H

#include "core/base/map.h"
#include "core/trace/trace_lines.h"
#include "gm/trace.h"

struct gm_trace {
  gm_services services;
  char *path; /* owned; path_bytes with the end mark */
  size_t path_bytes;
  gm__trace_lines lines;
  gm__map bytes;   /* live id → bytes */
  gm__map streams; /* live id → stream; only those that are not on stream 0 */
  uint64_t last_id;
  bool any_id;
  gm_error failure; /* what every further call answers, unless GM_OK */
};

/* Like gm_trace_open, for `length` bytes in memory. They stay valid until gm_trace_close. `name` stands for the
 * path. */
gm_status gm__trace_open_memory(const gm_services *services, const void *bytes, uint64_t length, const char *name,
                                gm_trace **out, gm_error *err);

#endif
