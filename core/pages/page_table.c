/* Tables of pages in device memory. The rows lie on the host as they were set. `image` is what the device should have.
 * A send brings it up to date, and copies what changed into a staging buffer. That one stays as it is until the device
 * has read it. */
#include "gm/page_table.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/sized.h"
#include "core/device/device.h"
#include "core/pages/page_planes.h"
#include "core/pages/pages.h"
#include "gm/copy.h"

enum { TABLE_BUFFERS = 2, TABLE_GAP = 4096, TABLE_MOST = 1 << 28 };

struct gm_page_table {
  gm_pages *set;
  gm_pool *pool;
  gm_block block;
  gm_page_table_form form;
  uint32_t rows, width, plane;
  uint64_t bytes;           /* of the image */
  uint64_t lasts_at, at;    /* bytes into the image: of CSR's `lasts`, of the first page */
  gm_page *pages;           /* [rows][width] */
  uint32_t *owners, *lasts; /* of each row */
  uint32_t *counts;
  uint32_t *low, *high; /* of each row: places that changed; low is not less than high: none */
  uint64_t came;        /* ADDRESS: that of the planes when the image was made */
  uint32_t moved;       /* CSR: the first row whose length changed; `rows`: none */
  unsigned char *image, *staging[TABLE_BUFFERS];
  gm_point points[TABLE_BUFFERS];
  uint32_t turn;
};

typedef struct table_span { /* bytes of the image that go as one copy */
  uint64_t begin, end;
} table_span;

static const gm_services *table_services(const gm_page_table *table) { return gm__pages_services(table->set); }

static uint64_t table_places(const gm_page_table *table) { return (uint64_t)table->rows * table->width; }

/* ---- begin and end ---- */

static void table_release(gm_page_table *table) {
  const gm_services *services = table_services(table);
  const size_t rows = table->rows * sizeof(uint32_t);
  gm__release(services, table->pages, table_places(table) * sizeof *table->pages);
  gm__release(services, table->owners, rows);
  gm__release(services, table->lasts, rows);
  gm__release(services, table->counts, rows);
  gm__release(services, table->low, rows);
  gm__release(services, table->high, rows);
  gm__release(services, table->image, table->bytes);
  for (int i = 0; i < TABLE_BUFFERS; i++) gm__release(services, table->staging[i], table->bytes);
  gm__release(services, table, sizeof *table);
}

static bool table_begin(gm_page_table *table) {
  const gm_services *services = table_services(table);
  bool fine = true;
  uint32_t **const of_rows[] = {&table->owners, &table->lasts, &table->counts, &table->low, &table->high};
  for (size_t i = 0; i < sizeof of_rows / sizeof of_rows[0]; i++) {
    *of_rows[i] = gm__alloc_array(services, table->rows, sizeof(uint32_t));
    fine = fine && *of_rows[i];
  }
  table->pages = gm__alloc_array(services, table_places(table), sizeof *table->pages);
  table->image = gm__alloc(services, table->bytes);
  for (int i = 0; i < TABLE_BUFFERS; i++) {
    table->staging[i] = gm__alloc(services, table->bytes);
    fine = fine && table->staging[i];
  }
  return fine && table->pages && table->image;
}

/* All is sent next time. */
static void table_dirty(gm_page_table *table) {
  table->moved = 0;
  for (uint32_t row = 0; row < table->rows; row++) {
    table->low[row] = 0;
    table->high[row] = table->width;
  }
}

static gm_status table_check(const gm_pages *set, const gm_page_table_params *params, const char *op, gm_error *err) {
  const bool addresses = params->form == GM_PAGE_TABLE_ADDRESS;
  if (!params->rows || !params->width || (uint64_t)params->rows * params->width > TABLE_MOST)
    return gm__bad_argument(err, op, "a table of %u rows of %u", params->rows, params->width);
  if ((unsigned)params->form > GM_PAGE_TABLE_ADDRESS || params->reserved)
    return gm__bad_argument(err, op, "`params->form` is %d", (int)params->form);
  if (!params->pool && !set->planes.pool) return gm__bad_argument(err, op, "there is no pool");
  if (params->request && (params->request->bytes || params->request->stream))
    return gm__bad_argument(err, op, "`params->request` has bytes or a stream");
  if (addresses && params->plane >= set->planes.count)
    return gm__bad_argument(err, op, "`params->plane` is %u, not below %u", params->plane, set->planes.count);
  if (addresses && set->planes.request.flags & GM_ALLOW_SPANS)
    return gm__bad_argument(err, op, "the set's blocks may be spans, which have no address");
  return GM_OK;
}

static void table_shape(gm_page_table *table, const gm_page_table_params *params) {
  table->pool = params->pool ? params->pool : table->set->planes.pool;
  table->form = params->form;
  table->rows = params->rows;
  table->width = params->width;
  table->plane = params->plane;
  if (table->form == GM_PAGE_TABLE_CSR) {
    table->lasts_at = (table->rows + UINT64_C(1)) * sizeof(int32_t);
    table->at = table->lasts_at + table->rows * sizeof(int32_t);
  }
  const size_t each = table->form == GM_PAGE_TABLE_ADDRESS ? sizeof(uint64_t) : sizeof(int32_t);
  table->bytes = table->at + table_places(table) * each;
}

gm_status gm_page_table_create(gm_pages *pages, const gm_page_table_params *params, gm_page_table **out,
                               gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_page_table_create";
  gm_page_table_params asked;
  gm_status status = gm__pages_check(pages, op, err);
  if (!status) status = gm__sized_in(&asked, sizeof asked, params, op, "params", err);
  if (!status) status = out ? table_check(pages, &asked, op, err) : gm__bad_argument(err, op, "`out` is NULL");
  if (status) return status;
  gm_page_table *table = gm__alloc(gm__pages_services(pages), sizeof *table);
  if (!table) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for a table");
  table->set = pages;
  table_shape(table, &asked);
  if (!table_begin(table)) {
    table_release(table);
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for a table");
  }
  gm_request request = asked.request ? *asked.request : (gm_request){.bytes = 0};
  request.bytes = table->bytes;
  const gm_acquire answer = gm_alloc(table->pool, &request, &table->block);
  if (!gm_acquired(answer)) {
    table_release(table);
    return gm__page_pool_refused(answer, request.bytes, op, err);
  }
  table_dirty(table);
  gm__mutex_lock(&pages->lock);
  pages->tables++;
  gm__mutex_unlock(&pages->lock);
  *out = table;
  return GM_OK;
}

static void table_wait(gm_page_table *table, uint32_t buffer) {
  gm_device *device = gm_pool_device(table->pool);
  if (!table->points[buffer].stream) return;
  gm_point_wait(device, &table->points[buffer], UINT64_MAX, NULL); /* a lost device reads nothing more */
  gm_point_release(device, &table->points[buffer]);
}

gm_status gm_page_table_destroy(gm_page_table *table, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_page_table_destroy";
  if (!table) return GM_OK;
  gm_status status = gm__pages_check(table->set, op, err);
  if (status == GM_ERR_FORKED) table_release(table);
  if (status) return status == GM_ERR_FORKED ? GM_OK : status;
  for (uint32_t i = 0; i < TABLE_BUFFERS; i++) table_wait(table, i);
  status = gm_free(table->pool, &table->block, NULL);
  if (status == GM_ERR_BUSY) return gm__fail(err, status, op, "the table's block is mapped");
  gm__mutex_lock(&table->set->lock);
  table->set->tables--;
  gm__mutex_unlock(&table->set->lock);
  table_release(table);
  return GM_OK;
}

/* ---- rows ---- */

static void table_put(gm_page_table *table, uint32_t row, const gm_page *which, uint32_t count) {
  gm_page *places = &table->pages[(size_t)row * table->width];
  const uint32_t longest = count > table->counts[row] ? count : table->counts[row];
  for (uint32_t i = 0; i < longest; i++) {
    const gm_page page = i < count ? which[i] : GM_NO_PAGE;
    if (i < table->counts[row] && places[i] == page) continue;
    places[i] = page;
    if (i < table->low[row]) table->low[row] = i;
    if (i >= table->high[row]) table->high[row] = i + 1;
  }
  if (row < table->moved && count != table->counts[row]) table->moved = row;
  table->counts[row] = count;
}

static gm_status table_owner(gm_pages *set, uint32_t number, const gm_page *which, uint32_t count, const char *op,
                             gm_error *err) {
  const gm__page_owner *owner = gm__page_owner_find(set, number);
  if (!owner) return gm__page_owner_fault(set, number, op, err);
  for (uint32_t i = 0; i < count; i++) {
    if (which[i] >= set->max_pages || !gm__page_is_held_by(set, owner, which[i]))
      return gm__page_not_held(set, owner, which[i], op, err);
  }
  return GM_OK;
}

gm_status gm_page_table_set(gm_page_table *table, uint32_t row, uint32_t owner, const gm_page *which, uint32_t count,
                            uint32_t last, gm_error *err) {
  static const char op[] = "gm_page_table_set";
  if (!table || (count && !which)) return gm__bad_argument(err, op, "`%s` is NULL", table ? "which" : "table");
  if (row >= table->rows || count > table->width)
    return gm__bad_argument(err, op, "row %u of %u with %u pages, and %u are allowed", row, table->rows, count,
                            table->width);
  gm_status status = gm__pages_enter(table->set, op, err);
  if (status) return status;
  if (count) status = table_owner(table->set, owner, which, count, op, err);
  gm__mutex_unlock(&table->set->lock);
  if (status) return status;
  table->owners[row] = owner;
  table->lasts[row] = count ? last : 0;
  table_put(table, row, which, count);
  return GM_OK;
}

/* ---- sending ---- */

/* Copies a span into the staging buffer, and from there to the device. */
static gm_status table_write(gm_page_table *table, table_span span, gm_stream *stream, uint64_t *sent, gm_error *err) {
  gm_point point = {0, 0, 0};
  unsigned char *staging = table->staging[table->turn];
  const uint64_t bytes = span.end - span.begin;
  if (!bytes) return GM_OK;
  memcpy(staging + span.begin, table->image + span.begin, bytes);
  const gm_status status = gm_block_write(table->pool, &table->block, span.begin, staging + span.begin, bytes, stream,
                                          stream ? &point : NULL, err);
  if (!status && stream) gm_point_release(gm_stream_device(stream), &point);
  *sent += status ? 0 : bytes;
  return status;
}

/* Adds bytes that changed to the span, or writes it and begins another. */
static gm_status table_add(gm_page_table *table, table_span *span, uint64_t begin, uint64_t end, gm_stream *stream,
                           uint64_t *sent, gm_error *err) {
  if (span->end && begin <= span->end + TABLE_GAP) {
    span->end = end;
    return GM_OK;
  }
  const gm_status status = table_write(table, *span, stream, sent, err);
  *span = (table_span){begin, end};
  return status;
}

/* The value of one place, in the image. REQUIRES: the lock, for addresses. */
static void table_place(gm_page_table *table, uint32_t row, uint32_t i) {
  const gm_pages *set = table->set;
  const uint64_t place = (uint64_t)row * table->width + i;
  const bool used = i < table->counts[row];
  const gm_page page = table->pages[place];
  if (table->form == GM_PAGE_TABLE_DENSE) {
    ((int32_t *)(void *)table->image)[place] = used ? (int32_t)page : set->keep_first ? 0 : -1;
    return;
  }
  const gm_block *block = used ? gm__page_block(set, table->plane, page) : NULL;
  ((uint64_t *)(void *)table->image)[place] = block ? block->address + gm__page_offset(set, table->plane, page) : 0;
}

/* Sends what changed in the rows of a table that is not CSR. */
static gm_status table_send_rows(gm_page_table *table, gm_stream *stream, uint64_t *sent, gm_error *err) {
  const uint64_t each = table->form == GM_PAGE_TABLE_ADDRESS ? sizeof(uint64_t) : sizeof(int32_t);
  table_span span = {0, 0};
  gm_status status = GM_OK;
  for (uint32_t row = 0; row < table->rows && !status; row++) {
    const uint64_t first = (uint64_t)row * table->width;
    if (table->low[row] >= table->high[row]) continue;
    status =
        table_add(table, &span, (first + table->low[row]) * each, (first + table->high[row]) * each, stream, sent, err);
  }
  return status ? status : table_write(table, span, stream, sent, err);
}

/* Brings the image of CSR up to date from the first row on that moved. */
static void table_pack(gm_page_table *table) {
  int32_t *starts = (int32_t *)(void *)table->image, *pages = (int32_t *)(void *)(table->image + table->at);
  for (uint32_t row = 0; row < table->rows; row++) {
    const bool moved = row >= table->moved;
    if (moved) starts[row + 1] = starts[row] + (int32_t)table->counts[row];
    ((int32_t *)(void *)(table->image + table->lasts_at))[row] = (int32_t)table->lasts[row];
    if (!moved && table->low[row] >= table->high[row]) continue;
    memcpy(&pages[starts[row]], &table->pages[(size_t)row * table->width], table->counts[row] * sizeof *pages);
  }
}

/* Sends `lasts` whole, as they change with each token; starts and pages where they changed. */
static gm_status table_send_csr(gm_page_table *table, gm_stream *stream, uint64_t *sent, gm_error *err) {
  const int32_t *starts = (const int32_t *)(const void *)table->image;
  table_span span = {0, 0};
  gm_status status = GM_OK;
  if (table->moved < table->rows) span = (table_span){table->moved * sizeof(int32_t), table->lasts_at};
  status = table_add(table, &span, table->lasts_at, table->at, stream, sent, err);
  for (uint32_t row = 0; row < table->moved && !status; row++) {
    if (table->low[row] >= table->high[row]) continue;
    const uint64_t first = table->at + (uint64_t)starts[row] * sizeof(int32_t);
    status = table_add(table, &span, first + table->low[row] * sizeof(int32_t),
                       first + table->high[row] * sizeof(int32_t), stream, sent, err);
  }
  if (table->moved < table->rows && !status)
    status = table_add(table, &span, table->at + (uint64_t)starts[table->moved] * sizeof(int32_t),
                       table->at + (uint64_t)starts[table->rows] * sizeof(int32_t), stream, sent, err);
  return status ? status : table_write(table, span, stream, sent, err);
}

/* Checks the owners, and brings the image up to date. REQUIRES: the lock. */
static gm_status table_render(gm_page_table *table, const char *op, gm_error *err) {
  for (uint32_t row = 0; row < table->rows; row++) {
    if (table->counts[row] && !gm__page_owner_find(table->set, table->owners[row]))
      return gm__page_owner_fault(table->set, table->owners[row], op, err);
  }
  if (table->form == GM_PAGE_TABLE_CSR) {
    table_pack(table);
    return GM_OK;
  }
  if (table->form == GM_PAGE_TABLE_ADDRESS && table->came != table->set->planes.came) {
    table_dirty(table); /* a page may have lost its memory, and have other memory now */
    table->came = table->set->planes.came;
  }
  for (uint32_t row = 0; row < table->rows; row++) {
    for (uint32_t i = table->low[row]; i < table->high[row]; i++) table_place(table, row, i);
  }
  return GM_OK;
}

static void table_clean(gm_page_table *table) {
  table->moved = table->rows;
  for (uint32_t row = 0; row < table->rows; row++) {
    table->low[row] = table->width;
    table->high[row] = 0;
  }
}

/* The new send comes behind the last one, whichever stream that was on. Where the stream cannot wait, the host does. */
static void table_after_last(gm_page_table *table, gm_stream *stream) {
  const gm_point *last = &table->points[table->turn];
  if (!last->stream || (stream && last->stream == gm_stream_id(stream))) return;
  if (!stream || gm_stream_wait(stream, last, NULL)) table_wait(table, table->turn);
}

gm_status gm_page_table_send(gm_page_table *table, gm_stream *stream, gm_page_table_place *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_page_table_send";
  if (!table || !out) return gm__bad_argument(err, op, "`%s` is NULL", table ? "out" : "table");
  gm_status status = gm__pages_check(table->set, op, err);
  if (!status) status = gm__page_stream_check(table->pool, stream, op, err);
  if (status) return status;
  gm__mutex_lock(&table->set->lock);
  status = gm__pages_leave(table->set, table_render(table, op, err));
  if (status) return status;
  uint64_t sent = 0;
  table_after_last(table, stream);
  table->turn = (table->turn + 1) % TABLE_BUFFERS;
  table_wait(table, table->turn);
  status = gm__page_barrier(stream, err);
  if (!status)
    status = table->form == GM_PAGE_TABLE_CSR ? table_send_csr(table, stream, &sent, err)
                                              : table_send_rows(table, stream, &sent, err);
  if (!status) status = gm__page_barrier(stream, err);
  if (stream && gm_stream_record(stream, &table->points[table->turn], status ? NULL : err)) {
    table->points[table->turn] = (gm_point){0, 0, 0};
    const gm_status waited = gm_stream_sync(stream, NULL);
    if (!status) status = waited;
  }
  if (status) {
    table_dirty(table);
    return gm__error_of(op, status, err);
  }
  table_clean(table);
  *out = (gm_page_table_place){table->block, 0, table->lasts_at, table->at, sent};
  return GM_OK;
}
