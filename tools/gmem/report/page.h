/* A report as one HTML page, which needs no network: its data, its script and its style are in it. */
#ifndef GM_TOOLS_GMEM_REPORT_PAGE_H
#define GM_TOOLS_GMEM_REPORT_PAGE_H

#include "tools/gmem/report/report_file.h"

/* A report_write. OUT_OF_HOST_MEMORY. */
gm_status report_page_write(FILE *file, const char *name, const report_events *events, gm_error *err);

#endif
