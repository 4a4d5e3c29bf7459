/* Reads of many ranges: each byte arrives once in its place and none beside it, whatever the plan, the way and the
 * number of workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/read_scene.h"

uint64_t __real_gm__now_ns(void);
uint64_t __wrap_gm__now_ns(void);

static bool clock_follows_reads;

uint64_t __wrap_gm__now_ns(void) {
  return clock_follows_reads ? 1 + UINT64_C(30000000) * (uint64_t)played_reads.reads : __real_gm__now_ns();
}

/* ---- the plan ---- */

static void test_every_byte_of_any_plan_arrives_once(void **state) {
  (void)state;
  static const gm_way ways[] = {GM_WAY_AUTO, GM_WAY_CACHE, GM_WAY_DIRECT, GM_WAY_MAP};
  static const uint32_t workers[] = {0, 1, 4, 99};
  uint64_t seed = 7;
  for (int i = 0; i < 48; i++) {
    uint64_t bytes = 0;
    played_reads_begin();
    played_reads.short_reads = i % 3 == 1;
    played_reads.interrupts = i % 3 == 2;
    played_reads.odd_direct = i % 5 == 4;
    if (i % 7 == 6) played_reads.direct_code = EIO;
    open_files(ways[i % 4]);
    random_ranges(&seed);
    const gm__read_figures figures = read_all(workers[i / 4 % 4]);
    for (uint64_t j = 0; j < f.count; j++) bytes += f.ranges[j].bytes;
    assert_int_equal(figures.cached_bytes + figures.direct_bytes + figures.mapped_bytes, bytes);
    assert_int_equal(figures.mapped_bytes != 0, ways[i % 4] == GM_WAY_MAP);
    assert_int_equal(figures.direct_failures != 0, i % 7 == 6 && ways[i % 4] == GM_WAY_DIRECT);
  }
  assert_int_equal(room.given, 0);
}

static void test_pieces_come_in_the_order_of_the_files(void **state) {
  (void)state;
  uint64_t seed = 3;
  open_files(GM_WAY_CACHE);
  random_ranges(&seed);
  gm__read *read = start(0);
  gm__read_piece *piece = NULL;
  uint64_t file = 0, at = 0;
  while (gm__read_next(read, GM__NEVER, &piece, NULL) == GM_OK && piece) {
    const uint64_t now = file_of(piece->file), first = f.ranges[gm__read_part_of(read, piece, 0).range].at;
    assert_true(now > file || (now == file && first >= at));
    assert_true(piece->bytes <= PIECE && (piece->at % PIECE) + piece->bytes <= PIECE);
    file = now;
    at = first;
    free(piece->memory.host);
    gm__read_done(read, piece);
  }
  gm__read_end(read);
}

/* 40 ranges that lie side by side, with holes, are three direct reads. */
static void test_near_ranges_are_read_together(void **state) {
  (void)state;
  open_files(GM_WAY_DIRECT);
  no_ranges();
  for (uint64_t i = 0; i < RANGES; i++) add_range(0, (RANGES - 1 - i) * 1000 + 5, 900, f.space + GUARD + 2000 * i);
  const gm__read_figures figures = read_all(0);
  assert_int_equal(figures.reads, 3);
  assert_int_equal(played_reads.direct_reads, 3);
  assert_int_equal(figures.direct_bytes, RANGES * 900);
}

/* Neither goes through other memory where its piece ends with the other one. */
static void test_large_ranges_are_read_apart(void **state) {
  (void)state;
  enum { LARGE = 300 << 10 };
  file_bytes_write(&folder, "large", 9, 2 * LARGE);
  unsigned char *base = f.space + (4096 - (uintptr_t)f.space % 4096);
  gm_file *file = NULL;
  assert_int_equal(gm__file_open(&f.host.services, temp_folder_join(&folder, "large"), GM_WAY_DIRECT, &file, NULL),
                   GM_OK);
  const gm__read_range ranges[] = {{.file = file, .bytes = LARGE, .to = base},
                                   {.file = file, .at = LARGE, .bytes = LARGE, .to = base + LARGE + 4096}};
  const gm__read_params params = {.services = &f.host.services};
  gm__read *read = NULL;
  gm__read_piece *piece = NULL;
  gm__read_figures figures;
  assert_int_equal(gm__read_start(ranges, 2, &params, &read, NULL), GM_OK);
  while (gm__read_next(read, GM__NEVER, &piece, NULL) == GM_OK && piece) gm__read_done(read, piece);
  gm__read_get_figures(read, &figures);
  assert_int_equal(figures.direct_bytes, 2 * LARGE);
  assert_true(figures.host_bytes < GM__READ_PIECE); /* no memory between */
  for (uint64_t i = 0; i < LARGE; i++) {
    assert_int_equal(base[i], file_byte(9, i));
    assert_int_equal(base[LARGE + 4096 + i], file_byte(9, LARGE + i));
  }
  gm__read_end(read);
  gm_file_close(file);
}

/* How memory must be aligned for direct reads of a file; 4096 where the system does not say. */
static uint32_t direct_align(const char *name) {
  gm__input_file file, direct;
  const char *path = temp_folder_join(&folder, name);
  assert_int_equal(gm__input_file_open(path, &file, NULL), GM_OK);
  direct.fd = -1;
  const uint32_t align = gm__input_file_open_direct(&file, path, &direct, NULL) == GM_OK ? direct.align : 4096;
  gm__input_file_close(&direct);
  gm__input_file_close(&file);
  return align;
}

/* Memory that lies to pages otherwise than the file does needs none between, where the disk takes it. */
static void test_what_the_disk_takes_goes_straight_to_its_place(void **state) {
  (void)state;
  enum { LARGE = 300 << 10 };
  file_bytes_write(&folder, "shifted", 9, 2 * LARGE);
  const uint32_t align = direct_align("shifted");
  unsigned char *base = f.space + (4096 - (uintptr_t)f.space % 4096);
  for (uint32_t shift = 1; shift < 4096; shift *= 2) {
    gm_file *file = NULL;
    assert_int_equal(gm__file_open(&f.host.services, temp_folder_join(&folder, "shifted"), GM_WAY_DIRECT, &file, NULL),
                     GM_OK);
    const gm__read_range range = {.file = file, .at = 123, .bytes = LARGE, .to = base + 123 + shift};
    const gm__read_params params = {.services = &f.host.services};
    gm__read *read = NULL;
    gm__read_piece *piece = NULL;
    gm__read_figures figures;
    memset(base, 0xee, LARGE + 8192);
    assert_int_equal(gm__read_start(&range, 1, &params, &read, NULL), GM_OK);
    while (gm__read_next(read, GM__NEVER, &piece, NULL) == GM_OK && piece) gm__read_done(read, piece);
    gm__read_get_figures(read, &figures);
    assert_int_equal(figures.direct_bytes, LARGE);
    assert_int_equal(figures.direct_failures, 0);
    if (played_reads.direct_reads) assert_int_equal(figures.host_bytes < GM__READ_PIECE, shift % align == 0);
    assert_int_equal(range.to[-1], 0xee);
    assert_int_equal(range.to[LARGE], 0xee);
    for (uint64_t i = 0; i < LARGE; i++) assert_int_equal(range.to[i], file_byte(9, 123 + i));
    gm__read_end(read);
    gm_file_close(file);
  }
}

static void test_holes_are_not_read_through_the_page_cache(void **state) {
  (void)state;
  open_files(GM_WAY_CACHE);
  no_ranges();
  for (uint64_t i = 0; i < RANGES; i++) add_range(0, i * 1000, 100, f.space + GUARD + 2000 * i);
  read_all(0);
  assert_int_equal(played_reads.cached_bytes, RANGES * 100);
}

/* A part of a matrix: 30 columns of 100, in each of 500 rows. */
static void test_what_lies_between_runs_is_left_alone(void **state) {
  (void)state;
  static const uint64_t narrow[] = {30, 100, 500};
  open_files(GM_WAY_CACHE);
  no_ranges();
  add_runs(0, 7, narrow, f.space + GUARD);
  gm__read_figures figures = read_all(0);
  assert_int_equal(played_reads.cached_bytes, 500 * 30); /* no byte more */
  assert_int_equal(figures.reads, 50000 / PIECE + 1);
  for (uint64_t place = 6; place < 8; place++) { /* also as they lie in the file */
    played_reads_begin();
    open_files(GM_WAY_DIRECT);
    no_ranges();
    add_runs(0, 7, narrow, f.space + (4096 - (uintptr_t)f.space % 4096) + place);
    figures = read_all(0);
    assert_int_equal(played_reads.direct_reads, 50000 / PIECE + 1); /* each stretch at once */
    assert_int_equal(figures.direct_bytes, 500 * 30);
  }
}

/* They are read one by one, though one piece could have them. */
static void test_runs_far_from_each_other(void **state) {
  (void)state;
  enum { RUN = 5000, STEP = RUN + GM__READ_GAP + 1, RUNS = 4 };
  const gm__read_params params = {.services = &f.host.services};
  gm__read *read = NULL;
  gm_error err = {0};
  open_files(GM_WAY_DIRECT);
  no_ranges();
  add_runs(0, 3, (const uint64_t[]){RUN, STEP, RUNS}, f.space + GUARD);
  played_reads_begin();
  assert_int_equal(gm__read_start(f.ranges, f.count, &params, &read, &err), GM_OK);
  assert_int_equal(run(read, &err), GM_OK);
  gm__read_end(read);
  check_places();
  assert_int_equal(played_reads.direct_reads, RUNS);
  assert_true(played_reads.direct_bytes <= RUNS * (RUN + 2 * 4096));
}

static void test_runs_behind_the_end(void **state) {
  (void)state;
  enum { RUNS = 300, STEP = 1000, RUN = 100, REACH = (RUNS - 1) * STEP + RUN };
  static const uint64_t runs[] = {RUN, STEP, RUNS}, far[] = {1, UINT64_MAX, 3};
  const gm__read_params params = {.services = &f.host.services};
  gm__read *read = NULL;
  gm_error err = {0};
  open_files(GM_WAY_CACHE);
  no_ranges();
  add_runs(0, sizes[0] - REACH, runs, f.space + GUARD); /* the last one ends with the file */
  read_all(0);
  no_ranges();
  add_runs(0, sizes[0] - REACH + 1, runs, f.space);
  add_runs(0, 0, far, f.space);
  assert_int_equal(gm__read_start(f.ranges, 1, &params, &read, &err), GM_ERR_IO);
  assert_non_null(strstr(err.message, "/0: has 300001 bytes, 299100 bytes at 902 end behind it"));
  assert_int_equal(gm__read_start(f.ranges + 1, 1, &params, &read, &err), GM_ERR_IO);
}

static void test_a_range_as_it_lies_in_the_file_needs_no_other_memory(void **state) {
  (void)state;
  unsigned char *base = f.space + (4096 - (uintptr_t)f.space % 4096);
  for (uint64_t off = 0; off < 2; off++) {
    open_files(GM_WAY_DIRECT);
    no_ranges();
    add_range(0, 4096, 100000, base + off);
    const gm__read_figures figures = read_all(0);
    if (off) assert_true(figures.host_bytes >= PIECE);
    if (!off) assert_true(figures.host_bytes < PIECE);
    assert_int_equal(figures.direct_bytes, 100000);
  }
}

static void test_a_range_behind_the_end(void **state) {
  (void)state;
  const gm__read_params params = {.services = &f.host.services};
  gm__read *read = NULL;
  gm_error err;
  open_files(GM_WAY_AUTO);
  no_ranges();
  add_range(0, sizes[0] - 5, 6, f.space);
  assert_int_equal(gm__read_start(f.ranges, 1, &params, &read, &err), GM_ERR_IO);
  assert_non_null(strstr(err.message, "/0: has 300001 bytes, 6 bytes at 299996 end behind it"));
  f.ranges[0].at = UINT64_MAX - 2;
  assert_int_equal(gm__read_start(f.ranges, 1, &params, &read, &err), GM_ERR_IO);
  assert_int_equal(gm__read_start(NULL, 0, &params, &read, &err), GM_OK);
  assert_int_equal(run(read, &err), GM_OK);
  gm__read_end(read);
  gm__read_end(NULL);
}

/* ---- the page cache ---- */

static gm__read_figures read_with(int64_t resident) {
  played_reads_begin();
  played_reads.resident = resident;
  open_files(GM_WAY_AUTO);
  no_ranges();
  add_range(0, 0, sizes[0], f.space + GUARD);
  return read_all(0);
}

static void test_what_lies_in_the_page_cache_decides(void **state) {
  (void)state;
  assert_int_equal(read_with(0).direct_bytes, sizes[0]);
  assert_int_equal(read_with(400).direct_bytes, sizes[0]);
  assert_int_equal(read_with(600).cached_bytes, sizes[0]);
  assert_int_equal(read_with(1000).cached_bytes, sizes[0]);
  assert_int_equal(read_with(PLAYED_REAL).cached_bytes, sizes[0]); /* it was just written */
}

/* Before Linux 6.5 pages are counted in a mapping. */
static void test_the_page_cache_is_counted_either_way(void **state) {
  (void)state;
  uint64_t resident = 0;
  open_files(GM_WAY_AUTO);
  for (int old = 0; old < 2; old++) {
    played_reads.resident = old ? PLAYED_NOTHING : PLAYED_REAL;
    assert_true(gm__input_file_resident(&f.files[0]->input, 0, sizes[0], &resident));
    assert_int_equal(resident, sizes[0]);
    assert_true(gm__input_file_resident(&f.files[0]->input, 4095, 2, &resident));
    assert_int_equal(resident, 2);
    assert_true(gm__input_file_resident(&f.files[0]->input, 4095, 0, &resident));
    assert_int_equal(resident, 0);
  }
}

/* ---- into memory that the host does not write ---- */

enum { FAR_FRONT = 37, FAR_END = 11 };

static struct {
  uint64_t bytes, calls;
  bool refuses;
} far;

/* Brings all but some bytes at both ends of what it is asked for. */
static uint64_t far_read(void *user, const gm__read_range *range, uint64_t from, uint64_t bytes, uint64_t *out_front) {
  far.calls++;
  if (far.refuses || bytes <= FAR_FRONT + FAR_END) return 0;
  *out_front = FAR_FRONT;
  const uint64_t middle = bytes - FAR_FRONT - FAR_END;
  unsigned char *to = (unsigned char *)user + range->address + from + FAR_FRONT;
  for (uint64_t i = 0; i < middle; i++) to[i] = file_byte(file_of(range->file), range->at + from + FAR_FRONT + i);
  far.bytes += middle;
  return middle;
}

/* The host copies the ends, and all of a piece that nobody brought. */
static void far_copy(const gm__read *read, const gm__read_piece *piece) {
  for (uint64_t i = 0; i < piece->count; i++) {
    const gm__read_part part = gm__read_part_of(read, piece, i);
    unsigned char *to = f.space + f.ranges[part.range].address + part.from;
    const unsigned char *data = gm__read_part_data(read, piece, i);
    for (uint64_t j = 0; j < part.bytes; j++) {
      if (j < piece->far_front || j >= piece->far_front + piece->far_bytes) to[j] = data[j];
    }
  }
}

static gm__read_figures far_all(gm_way way) {
  const gm__read_far by = {.read = far_read, .user = f.space};
  gm__read_piece *piece = NULL;
  gm__read_figures figures;
  uint64_t place = 0;
  open_files(way);
  no_ranges();
  for (uint64_t at = 5; at < 200000; at += 40001) {
    add_range(0, at, at < 100000 ? 40001 : 20, NULL);
    f.ranges[f.count - 1].address = place;
    if (f.count % 4) f.ranges[f.count - 1].far = &by;
    place += 50000;
  }
  gm__read *read = start(0);
  while (gm__read_next(read, GM__NEVER, &piece, NULL) == GM_OK && piece) {
    far_copy(read, piece);
    free(piece->memory.host);
    gm__read_done(read, piece);
  }
  gm__read_get_figures(read, &figures);
  gm__read_end(read);
  for (uint64_t i = 0; i < f.count; i++) {
    for (uint64_t j = 0; j < f.ranges[i].bytes; j++)
      assert_int_equal(f.space[f.ranges[i].address + j], file_byte(0, f.ranges[i].at + j));
  }
  return figures;
}

static void test_the_middle_goes_to_far_memory(void **state) {
  (void)state;
  static const gm_way ways[] = {GM_WAY_CACHE, GM_WAY_DIRECT, GM_WAY_AUTO};
  for (int i = 0; i < 6; i++) {
    memset(&far, 0, sizeof far);
    far.refuses = i >= 3;
    const gm__read_figures figures = far_all(ways[i % 3]);
    assert_true(far.calls > 3);
    assert_int_equal(figures.far_bytes, far.bytes);
    assert_int_equal(figures.far_bytes > 0, i < 3);
    assert_int_equal(figures.cached_bytes + figures.direct_bytes + figures.far_bytes, 3 * 40001 + 2 * 20);
  }
}

/* ---- bounds ---- */

static void test_no_more_pieces_are_under_way_than_allowed(void **state) {
  (void)state;
  gm__read_piece *pieces[GM__READ_FLIGHT + 1] = {0};
  gm_error err;
  open_files(GM_WAY_CACHE);
  whole_files();
  gm__read *read = start(4);
  for (int i = 0; i < GM__READ_FLIGHT; i++) assert_int_equal(gm__read_next(read, GM__NEVER, &pieces[i], &err), GM_OK);
  assert_int_equal(gm__read_next(read, SECOND / 50, &pieces[GM__READ_FLIGHT], &err), GM_ERR_TIMEOUT);
  assert_null(pieces[GM__READ_FLIGHT]);
  assert_int_equal(played_reads.reads, GM__READ_FLIGHT);
  for (int i = 0; i < GM__READ_FLIGHT; i++) {
    check_piece(read, pieces[i]);
    gm__read_done(read, pieces[i]);
  }
  assert_int_equal(run(read, &err), GM_OK);
  check_places();
  assert_true(played_reads.most <= 4);
  gm__read_end(read);
}

/* Each piece takes 30 ms of a played clock, so two large ones at a time would be 60. A small one has room beside one.
 */
static void test_a_slow_disk_has_one_piece_at_a_time(void **state) {
  (void)state;
  open_files(GM_WAY_CACHE);
  whole_files();
  clock_follows_reads = true;
  read_all(8);
  clock_follows_reads = false;
  assert_true(played_reads.reads > 20);
  assert_in_range(played_reads.most, 1, 2);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(test_every_byte_of_any_plan_arrives_once),
      TEST(test_pieces_come_in_the_order_of_the_files),
      TEST(test_near_ranges_are_read_together),
      TEST(test_large_ranges_are_read_apart),
      TEST(test_what_the_disk_takes_goes_straight_to_its_place),
      TEST(test_holes_are_not_read_through_the_page_cache),
      TEST(test_what_lies_between_runs_is_left_alone),
      TEST(test_runs_far_from_each_other),
      TEST(test_runs_behind_the_end),
      TEST(test_a_range_as_it_lies_in_the_file_needs_no_other_memory),
      TEST(test_a_range_behind_the_end),
      TEST(test_what_lies_in_the_page_cache_decides),
      TEST(test_the_page_cache_is_counted_either_way),
      TEST(test_the_middle_goes_to_far_memory),
      TEST(test_no_more_pieces_are_under_way_than_allowed),
      TEST(test_a_slow_disk_has_one_piece_at_a_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
