/* Packs the data of a page by libz, which is opened when it is first asked for. */
#ifndef GM_TOOLS_GMEM_REPORT_PAGE_PACK_H
#define GM_TOOLS_GMEM_REPORT_PAGE_PACK_H

#include "tools/gmem/report/page_bytes.h"

/* Packs `in` as zlib data (RFC 1950). False: there is no libz, or no memory; `out` is then empty. `out` is freed with
 * page_bytes_free. */
bool page_pack(const page_bytes *in, page_bytes *out);

#endif
