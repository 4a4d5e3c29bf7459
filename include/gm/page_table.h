/* Tables of pages in device memory, in the forms that kernels read. A row has the pages of an owner, in the order in
 * which the kernel reads them. Only what changed is sent. A table may be used by one thread at a time. */
#ifndef GM_PAGE_TABLE_H
#define GM_PAGE_TABLE_H

#include "gm/page_memory.h"

GM_BEGIN_DECLS

typedef struct gm_page_table gm_page_table;

typedef enum gm_page_table_form {
  /* int32_t [rows][width]: numbers of pages. Places beyond a row's pages hold 0 in a set of GM_PAGES_KEEP_FIRST, else
   * -1. */
  GM_PAGE_TABLE_DENSE = 0,
  /* int32_t: `starts` [rows + 1], `lasts` [rows], numbers of pages. Row r has those from starts[r] to starts[r + 1].
   * lasts[r] is what gm_page_table_set said of the row's last page. */
  GM_PAGE_TABLE_CSR = 1,
  /* uint64_t [rows][width]: the address of each page in a plane, 0 beyond a row's pages. */
  GM_PAGE_TABLE_ADDRESS = 2
} gm_page_table_form;

/* Zero-initialised with struct_size, rows and width set, it is a dense table in the set's pool. */
typedef struct gm_page_table_params {
  uint32_t struct_size;
  uint32_t rows;  /* rows * width is at most 2^28 */
  uint32_t width; /* most pages of a row */
  gm_page_table_form form;
  uint32_t plane;            /* of GM_PAGE_TABLE_ADDRESS */
  uint32_t reserved;         /* 0 */
  gm_pool *pool;             /* where the table lies; it outlives the table. NULL: the set's */
  const gm_request *request; /* how the pool is asked, without `bytes` and `stream`. NULL: no wishes */
} gm_page_table_params;

/* Where a table lies on the device. Never grows. */
typedef struct gm_page_table_place {
  gm_block block;         /* borrowed until the table is destroyed */
  uint64_t starts_offset; /* bytes into the block: of CSR alone, else 0 */
  uint64_t lasts_offset;  /* of CSR alone, else 0 */
  uint64_t pages_offset;  /* numbers or addresses of the pages */
  uint64_t sent_bytes;    /* that this call sent */
} gm_page_table_place;

/* Makes a table of empty rows. The caller destroys *out before the set. Errors: INVALID_ARGUMENT: also where there is
 * no pool, where the form or the plane is unknown, and for addresses of a set without memory. A set of spans has no
 * addresses either.
 * OUT_OF_DEVICE_MEMORY, OVER_LIMIT, DRIVER: the pool said so. OUT_OF_HOST_MEMORY, FORKED. */
GM_API gm_status gm_page_table_create(gm_pages *pages, const gm_page_table_params *params, gm_page_table **out,
                                      gm_error *err);

/* Ends a table, after the work that reads it. NULL is GM_OK. It waits for what was sent. BUSY: its block is mapped, and
 * nothing has changed. In a forked child it gives back host memory, before the set's end. */
GM_API gm_status gm_page_table_destroy(gm_page_table *table, gm_error *err);

/* Says which pages a row has from now on; the next gm_page_table_send sends what differs. `last` is for
 * GM_PAGE_TABLE_CSR, such as the tokens in the last page. A `count` of 0 empties the row, and `owner` is not looked at.
 * Errors: INVALID_ARGUMENT: no such row, more pages than the width, the owner, a page that it does not hold. Nothing
 * has changed then. FORKED. */
GM_API gm_status gm_page_table_set(gm_page_table *table, uint32_t row, uint32_t owner, const gm_page *which,
                                   uint32_t count, uint32_t last, gm_error *err);

/* Sends what changed since the last call, in the order of `stream`. Work that is submitted there later reads the new
 * rows, and earlier work the old ones. Other streams that read the table have to be done. Changed places that lie less
 * than 4 KiB apart go as one copy. Where a row of CSR got longer or shorter, all pages behind it are sent. With
 * `stream` NULL the bytes have arrived when the call returns. It waits while two earlier calls are under way. A
 * call comes behind the one before, whichever stream that was on. The stream is not being captured.
 *
 * Errors: INVALID_ARGUMENT: the owner of a row is closed; the message has its tag, and nothing was sent. It is
 * the answer for a stream of another device, too. FORKED, and those of gm_block_write and gm_stream_record. After one
 * of those the next call sends the whole table. */
GM_API gm_status gm_page_table_send(gm_page_table *table, gm_stream *stream, gm_page_table_place *out, gm_error *err);

GM_END_DECLS

#endif
