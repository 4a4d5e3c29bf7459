/* Tables of pages, read back from the device and compared with the rows. Needs cmocka.h included before. */
#ifndef GM_TESTS_TRANSFER_PAGE_TABLES_H
#define GM_TESTS_TRANSFER_PAGE_TABLES_H

#include "gm/page_table.h"
#include "transfer/page_contents.h"

enum { TABLE_ROWS = 5, TABLE_WIDTH = 6 };

typedef struct table_scene {
  transfer_world world;
  page_scene scene;
  gm_page_table *table;
  gm_page_table_place place;
  uint32_t owner, counts[TABLE_ROWS], lasts[TABLE_ROWS];
  gm_page pages[PAGES], rows[TABLE_ROWS][TABLE_WIDTH];
} table_scene;

static inline bool tables_open(table_scene *t, const char *backend, gm_page_table_form form) {
  const gm_page_table_params table = {
      .struct_size = sizeof table, .rows = TABLE_ROWS, .width = TABLE_WIDTH, .form = form, .plane = 1};
  gm_pages_params params = usual;
  memset(t, 0, sizeof *t);
  params.backed_pages = PAGES;
  if (!memory_open(&t->world, &t->scene, backend, params)) return false;
  world_ok(gm_page_table_create(t->scene.pages, &table, &t->table, err));
  t->owner = page_owner(&t->scene, "seq");
  world_ok(gm_pages_take(t->scene.pages, t->owner, PAGES, 0, t->pages, err));
  return true;
}

static inline void tables_close(table_scene *t) {
  world_ok(gm_page_table_destroy(t->table, err));
  if (t->owner) world_ok(gm_page_owner_close(t->scene.pages, t->owner, err));
  memory_close(&t->world, &t->scene);
}

static inline void tables_set(table_scene *t, uint32_t row, uint32_t count, uint64_t *random) {
  t->counts[row] = count;
  t->lasts[row] = count ? row + count : 0;
  for (uint32_t i = 0; i < count; i++) t->rows[row][i] = t->pages[test_random(random) % PAGES];
  world_ok(gm_page_table_set(t->table, row, t->owner, t->rows[row], count, row + count, err));
}

/* The row gets the pages that it had. */
static inline void tables_row_again(table_scene *t, uint32_t row, uint32_t count) {
  t->counts[row] = count;
  world_ok(gm_page_table_set(t->table, row, t->owner, t->rows[row], count, row + count, err));
}

/* All pages lose their memory, and get other memory: `other` has what they had. */
static inline void tables_pages_again(table_scene *t, gm_block *other, size_t count) {
  uint32_t gone;
  world_ok(gm_pages_release(t->scene.pages, t->owner, t->pages, PAGES, err));
  world_ok(gm_pages_trim(t->scene.pages, 0, &gone, err));
  assert_int_equal(gone, PAGES);
  for (size_t i = 0; i < count; i++) {
    const gm_request request = {.bytes = GRANULE * plane_bytes[i % PLANES]};
    assert_true(gm_acquired(gm_alloc(t->world.ends[0].pool, &request, &other[i])));
  }
  world_ok(gm_pages_grow(t->scene.pages, PAGES, err));
  world_ok(gm_pages_take(t->scene.pages, t->owner, PAGES, 0, t->pages, err));
}

static inline void tables_read(table_scene *t, void *out, size_t bytes, uint64_t offset) {
  world_ok(
      gm_block_read(t->world.ends[0].pool, &t->place.block, offset, out, bytes, t->world.ends[0].stream, NULL, err));
}

static inline void tables_check_csr(table_scene *t) {
  int32_t starts[TABLE_ROWS + 1], lasts[TABLE_ROWS], pages[TABLE_ROWS * TABLE_WIDTH];
  int32_t at = 0;
  tables_read(t, starts, sizeof starts, t->place.starts_offset);
  tables_read(t, lasts, sizeof lasts, t->place.lasts_offset);
  tables_read(t, pages, sizeof pages, t->place.pages_offset);
  for (uint32_t row = 0; row < TABLE_ROWS; row++) {
    assert_int_equal(starts[row], at);
    assert_int_equal(lasts[row], t->lasts[row]);
    for (uint32_t i = 0; i < t->counts[row]; i++, at++) assert_int_equal(pages[at], t->rows[row][i]);
  }
  assert_int_equal(starts[TABLE_ROWS], at);
}

static inline void tables_check(table_scene *t, gm_page_table_form form) {
  int32_t numbers[TABLE_ROWS][TABLE_WIDTH];
  uint64_t addresses[TABLE_ROWS][TABLE_WIDTH];
  if (form == GM_PAGE_TABLE_CSR) {
    tables_check_csr(t);
    return;
  }
  if (form == GM_PAGE_TABLE_DENSE)
    tables_read(t, numbers, sizeof numbers, t->place.pages_offset);
  else
    tables_read(t, addresses, sizeof addresses, t->place.pages_offset);
  for (uint32_t row = 0; row < TABLE_ROWS; row++) {
    for (uint32_t i = 0; i < TABLE_WIDTH; i++) {
      const bool used = i < t->counts[row];
      gm_block block = {.address = 0};
      uint64_t offset = 0;
      if (used) world_ok(gm_pages_place(t->scene.pages, 1, t->rows[row][i], &block, &offset, err));
      if (form == GM_PAGE_TABLE_DENSE)
        assert_int_equal(numbers[row][i], used ? (int32_t)t->rows[row][i] : -1);
      else
        assert_int_equal(addresses[row][i], block.address + offset);
    }
  }
}

static inline void tables_run(const char *backend, gm_page_table_form form, int rounds) {
  table_scene t;
  uint64_t random = 7;
  if (!tables_open(&t, backend, form)) return;
  for (int round = 0; round < rounds; round++) {
    gm_stream *stream = round % 3 ? t.world.ends[0].stream : NULL;
    const uint32_t row = (uint32_t)(test_random(&random) % TABLE_ROWS);
    if (round) tables_set(&t, row, (uint32_t)(test_random(&random) % (TABLE_WIDTH + 1)), &random);
    world_ok(gm_page_table_send(t.table, stream, &t.place, err));
    if (round && form != GM_PAGE_TABLE_CSR) assert_in_range(t.place.sent_bytes, 0, TABLE_WIDTH * sizeof(uint64_t));
    tables_check(&t, form);
  }
  world_ok(gm_page_table_send(t.table, NULL, &t.place, err));
  assert_int_equal(t.place.sent_bytes, form == GM_PAGE_TABLE_CSR ? TABLE_ROWS * sizeof(int32_t) : 0);
  tables_close(&t);
}

/* Each misuse is told. A row of a closed owner is not sent. */
static inline void tables_misuse(void) {
  table_scene t;
  gm_page_table *none = NULL;
  gm_page_table_params params = {.struct_size = sizeof params, .rows = 1, .width = 0};
  if (!tables_open(&t, "cpu", GM_PAGE_TABLE_DENSE)) return;
  page_scene *s = &t.scene;
  assert_refused(s, gm_page_table_create(s->pages, &params, &none, &s->err), GM_ERR_INVALID_ARGUMENT, "1 rows of 0");
  params = (gm_page_table_params){
      .struct_size = sizeof params, .rows = 1, .width = 1, .form = GM_PAGE_TABLE_ADDRESS, .plane = PLANES};
  assert_refused(s, gm_page_table_create(s->pages, &params, &none, &s->err), GM_ERR_INVALID_ARGUMENT,
                 "`params->plane`");
  assert_refused(s, gm_page_table_set(t.table, TABLE_ROWS, t.owner, t.pages, 1, 0, &s->err), GM_ERR_INVALID_ARGUMENT,
                 "row 5 of 5");
  assert_refused(s, gm_page_table_set(t.table, 0, t.owner, t.pages, TABLE_WIDTH + 1, 0, &s->err),
                 GM_ERR_INVALID_ARGUMENT, "6 are allowed");
  const uint32_t other = page_owner(s, "other");
  assert_refused(s, gm_page_table_set(t.table, 0, other, t.pages, 1, 0, &s->err), GM_ERR_INVALID_ARGUMENT,
                 "\"other\" does not hold page");
  world_ok(gm_page_owner_close(s->pages, other, err));
  world_ok(gm_page_table_set(t.table, 0, t.owner, t.pages, 2, 0, err));
  world_ok(gm_page_owner_close(s->pages, t.owner, err));
  assert_refused(s, gm_page_table_send(t.table, NULL, &t.place, &s->err), GM_ERR_INVALID_ARGUMENT,
                 "\"seq\", is closed");
  world_ok(gm_page_table_set(t.table, 0, 0, NULL, 0, 0, err));
  world_ok(gm_page_table_send(t.table, NULL, &t.place, err));
  assert_refused(s, gm_pages_destroy(s->pages, &s->err), GM_ERR_BUSY, "1 tables are not destroyed");
  t.owner = 0;
  tables_close(&t);
}

/* A span has no address that a table could send. Numbers of its pages can be sent. */
static inline void tables_of_spans(void) {
  transfer_world w;
  page_scene s;
  gm_page_table *table = NULL;
  gm_page_table_params shape = {.struct_size = sizeof shape, .rows = 1, .width = 1, .form = GM_PAGE_TABLE_ADDRESS};
  const gm_request request = {.flags = GM_ALLOW_SPANS};
  gm_pages_params params = usual;
  params.request = &request;
  if (!memory_open(&w, &s, "cpu", params)) return;
  assert_refused(&s, gm_page_table_create(s.pages, &shape, &table, &s.err), GM_ERR_INVALID_ARGUMENT, "may be spans");
  shape.form = GM_PAGE_TABLE_DENSE;
  world_ok(gm_page_table_create(s.pages, &shape, &table, err));
  world_ok(gm_page_table_destroy(table, err));
  memory_close(&w, &s);
}

/* A page that lost its memory and has other memory now is sent anew, though its number did not change. */
static inline void tables_follow(const char *backend) {
  table_scene t;
  uint64_t random = 7;
  if (!tables_open(&t, backend, GM_PAGE_TABLE_ADDRESS)) return;
  gm_block other[PLANES * PAGES];
  tables_set(&t, 1, 3, &random);
  world_ok(gm_page_table_send(t.table, NULL, &t.place, err));
  tables_pages_again(&t, other, PLANES * PAGES);
  tables_row_again(&t, 1, 3);
  world_ok(gm_page_table_send(t.table, NULL, &t.place, err));
  tables_check(&t, GM_PAGE_TABLE_ADDRESS);
  for (int i = 0; i < PLANES * PAGES; i++) assert_int_equal(gm_free(t.world.ends[0].pool, &other[i], NULL), GM_OK);
  tables_close(&t);
}

/* A stream of another device could never tell when its copies have passed. */
static inline void tables_of_strangers(void) {
  transfer_world w;
  page_scene s;
  gm_page row[2], out[2];
  gm_page_table *table;
  gm_page_table_place place;
  const gm_page_table_params shape = {.struct_size = sizeof shape, .rows = 1, .width = 1};
  gm_pages_params params = usual;
  params.backed_pages = PAGES;
  if (!memory_open(&w, &s, "cpu", params)) return;
  if (!world_add(&w, "cpu", 0)) fail();
  gm_stream *other = w.ends[1].stream;
  const uint32_t a = page_owner(&s, "a"), b = page_owner(&s, "b");
  world_ok(gm_page_table_create(s.pages, &shape, &table, err));
  world_ok(gm_pages_take(s.pages, a, 2, 0, row, err));
  world_ok(gm_pages_share(s.pages, b, row, 1, err));
  assert_refused(&s, gm_pages_write(s.pages, b, row, 1, 0, other, out, &s.err), GM_ERR_INVALID_ARGUMENT,
                 "of another device");
  assert_refused(&s, gm_pages_copy(s.pages, a, row + 1, s.pages, b, row, 1, other, &s.err), GM_ERR_INVALID_ARGUMENT,
                 "of another device");
  assert_refused(&s, gm_page_table_send(table, other, &place, &s.err), GM_ERR_INVALID_ARGUMENT, "of another device");
  gm_pages *far;
  params.pool = w.ends[1].pool;
  world_ok(gm_pages_create(w.ctx, &params, &far, err));
  assert_refused(&s, gm_pages_copy(s.pages, a, row, far, a, row, 0, NULL, &s.err), GM_ERR_INVALID_ARGUMENT,
                 "of two devices");
  world_ok(gm_pages_destroy(far, err));
  assert_int_equal(page_stats(&s).steps, 0);
  world_ok(gm_page_table_destroy(table, err));
  world_ok(gm_page_owner_close(s.pages, a, err));
  world_ok(gm_page_owner_close(s.pages, b, err));
  memory_close(&w, &s);
}

#endif
