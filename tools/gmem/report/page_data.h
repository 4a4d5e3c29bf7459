/* The events of a recording as the page of a report reads them (data.js). Four bytes, the lowest first, are the length
 * of a JSON object. The object follows, then the columns that it lists, one behind the other:
 *
 *   kind      a byte for each event: report_kind
 *   sizes     each size once, in the order of its first block
 *   size      for each block: 0, the next of `sizes`, or 1 + the place of an earlier one
 *   free      for each FREE event: how many blocks are younger than the freed one
 *   stream    for each ALLOC and FREE event: 0, as the event before, or 1 + the number
 *   thread    for each event
 *   time      for each event: nanoseconds since the one before
 *   tag       for each block
 *   reserved  for each event: twice the change; a loss is twice its amount - 1
 *
 * All but `kind` are numbers of page_bytes_number. A column that the recording does not have is not listed. `stream` is
 * listed if a stream other than 0 occurs. */
#ifndef GM_TOOLS_GMEM_REPORT_PAGE_DATA_H
#define GM_TOOLS_GMEM_REPORT_PAGE_DATA_H

#include "tools/gmem/report/events.h"
#include "tools/gmem/report/page_bytes.h"

/* OUT_OF_HOST_MEMORY. `out` is freed with page_bytes_free, also after a failure. */
gm_status page_data_make(const char *name, const report_events *events, page_bytes *out, gm_error *err);

#endif
