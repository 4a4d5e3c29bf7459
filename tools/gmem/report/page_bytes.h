/* A row of bytes that grows. Where memory is lacking it fails, and stays so. */
#ifndef GM_TOOLS_GMEM_REPORT_PAGE_BYTES_H
#define GM_TOOLS_GMEM_REPORT_PAGE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct page_bytes { /* zeroed: empty */
  unsigned char *data;
  size_t used, room;
  bool failed; /* for lack of memory */
} page_bytes;

void page_bytes_add(page_bytes *bytes, const void *data, size_t count);

/* A number in groups of 7 bits, the lowest first. The high bit says that another follows (LEB128). */
void page_bytes_number(page_bytes *bytes, uint64_t number);

void page_bytes_free(page_bytes *bytes);

#endif
