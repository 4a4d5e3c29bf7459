/* The file of a report. It has another name beside its place until it is complete. Until then an older file stays. */
#ifndef GM_TOOLS_GMEM_REPORT_REPORT_FILE_H
#define GM_TOOLS_GMEM_REPORT_REPORT_FILE_H

#include <stdio.h>

#include "tools/gmem/report/events.h"

/* Writes one format: the name of the recording as it was typed, and its events. The
 * caller looks at ferror(file). Errors: OUT_OF_HOST_MEMORY, and what the format refuses. */
typedef gm_status (*report_write)(FILE *file, const char *name, const report_events *events, gm_error *err);

/* Errors: those of `write`. IO, NOT_FOUND: the file cannot be made, written or renamed, or `path` is there and is no
 * regular file. INVALID_ARGUMENT: `path` is the file of `name`. */
gm_status report_file_write(const char *path, const char *name, const report_events *events, report_write write,
                            gm_error *err);

#endif
