/* The page around its data, which embed_page.cmake makes from template.html, style.css and the scripts. */
#ifndef GM_TOOLS_GMEM_REPORT_PAGE_PARTS_H
#define GM_TOOLS_GMEM_REPORT_PAGE_PARTS_H

#include <stddef.h>

extern const unsigned char page_before_data[], page_after_data[];
extern const size_t page_before_data_bytes, page_after_data_bytes;

#endif
