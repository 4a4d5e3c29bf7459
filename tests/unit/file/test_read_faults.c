/* Reads that fail: files that change meanwhile, bytes that cannot be read, memory that does not come, and a cancel.
 * Each is told with byte and range, and nothing stays behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/read_scene.h"

/* ---- failing ---- */

static void check_read_fails(uint32_t workers, gm_status wanted, const char *words, uint64_t range) {
  gm_error err = {0};
  gm__read_piece *piece = NULL;
  gm__read *read = start(workers);
  const gm_status status = run(read, &err);
  if (status != wanted || !strstr(err.message, words)) {
    fail_msg("got %s \"%s\", not %s \"%s\"", gm_status_name(status), err.message, gm_status_name(wanted), words);
  }
  if (wanted != GM_ERR_CANCELLED) assert_int_equal(gm__read_failed_range(read), range);
  assert_int_equal(gm__read_next(read, GM__NEVER, &piece, &err), wanted); /* and again */
  gm__read_end(read);
}

static void test_a_byte_that_cannot_be_read_is_named(void **state) {
  (void)state;
  static const gm_way ways[] = {GM_WAY_CACHE, GM_WAY_DIRECT};
  for (int i = 0; i < 4; i++) {
    open_files(ways[i % 2]);
    whole_files();
    played_reads.broken_at = 200000;
    check_read_fails(i < 2 ? 0 : 4, GM_ERR_IO, "/0: at byte 200000: input/output error", 0);
    no_ranges();
    for (uint64_t j = 0; j < RANGES; j++) add_range(0, 199000 + 100 * j, 100, f.space + 200 * j);
    check_read_fails(i < 2 ? 0 : 4, GM_ERR_IO, "at byte 200000", 10);
  }
}

static void test_a_direct_read_that_fails_is_done_again(void **state) {
  (void)state;
  open_files(GM_WAY_DIRECT);
  whole_files();
  played_reads.direct_code = EIO;
  const gm__read_figures figures = read_all(4);
  assert_int_equal(figures.direct_failures, figures.reads);
}

static void test_a_file_cut_anywhere(void **state) {
  (void)state;
  static const gm_way ways[] = {GM_WAY_CACHE, GM_WAY_DIRECT, GM_WAY_MAP};
  for (uint64_t cut = 0; cut < sizes[2]; cut += 117) {
    for (int i = 0; i < 3; i++) {
      char words[60];
      file_bytes_write(&folder, "2", 2, sizes[2]);
      open_files(ways[i]);
      assert_int_equal(truncate(temp_folder_join(&folder, "2"), (off_t)cut), 0);
      no_ranges();
      add_range(2, 0, 10, f.space);
      add_range(2, 10, sizes[2] - 10, f.space + 100);
      snprintf(words, sizeof words, ways[i] == GM_WAY_MAP ? "has %d bytes, it had 4096" : "ends at byte %d", (int)cut);
      check_read_fails(0, GM_ERR_IO, ways[i] == GM_WAY_DIRECT ? "was replaced or has changed" : words,
                       ways[i] == GM_WAY_CACHE && cut >= 10);
    }
  }
}

static void shrink(void) { assert_int_equal(truncate(temp_folder_join(&folder, "0"), 150000), 0); }
static void grow(void) { assert_int_equal(truncate(temp_folder_join(&folder, "0"), 400000), 0); }
static void replace(void) {
  file_bytes_write(&folder, "new", 1, sizes[0]);
  assert_int_equal(rename(temp_folder_join(&folder, "new"), temp_folder_join(&folder, "0")), 0);
}
static void overwrite(void) {
  const struct timespec times[2] = {{.tv_sec = 5}, {.tv_sec = 5}}; /* the clock of files ticks slowly */
  const char *path = temp_folder_join(&folder, "0");
  FILE *file = fopen(path, "r+b");
  assert_non_null(file);
  assert_int_equal(fputc('x', file), 'x');
  assert_int_equal(fclose(file), 0);
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void check_change(gm_way way, uint32_t workers, void (*act)(void), const char *words) {
  played_reads_begin();
  file_bytes_write(&folder, "0", 0, sizes[0]);
  open_files(way);
  whole_files();
  played_reads.act_at = 3;
  played_reads.act = act;
  check_read_fails(workers, GM_ERR_IO, workers ? "/0: " : words, 0); /* of several threads any may see it first */
}

static void test_a_file_that_changes_while_it_is_read(void **state) {
  (void)state;
  for (uint32_t workers = 0; workers < 5; workers += 4) {
    for (int direct = 0; direct < 2; direct++) {
      const gm_way way = direct ? GM_WAY_DIRECT : GM_WAY_CACHE;
      check_change(way, workers, shrink, "/0: ");
      check_change(way, workers, grow, "/0: has 400000 bytes, it had 300001 when it was opened, while bytes ");
      check_change(way, workers, overwrite, "/0: was written to since it was opened, while bytes ");
    }
  }
}

/* The opened file is still there, whole. Direct reads open it by its name. */
static void test_a_file_that_is_replaced(void **state) {
  (void)state;
  open_files(GM_WAY_CACHE);
  whole_files();
  played_reads.act_at = 3;
  played_reads.act = replace;
  read_all(0);
  file_bytes_write(&folder, "0", 0, sizes[0]);
  open_files(GM_WAY_DIRECT);
  whole_files();
  replace();
  check_read_fails(0, GM_ERR_IO, "/0: was replaced or has changed since it was opened", 0);
  assert_int_equal(unlink(temp_folder_join(&folder, "0")), 0);
  check_read_fails(0, GM_ERR_NOT_FOUND, "/0: no such file", 0);
}

/* ---- memory of rooms ---- */

static void roomed_files(void) {
  no_ranges();
  for (uint64_t i = 0; i < FILES; i++) add_range(i, 0, sizes[i], NULL);
}

static void test_memory_comes_late_or_not(void **state) {
  (void)state;
  gm_error err = {0};
  open_files(GM_WAY_DIRECT);
  roomed_files();
  room.late = 5;
  gm__read *read = start(4);
  assert_int_equal(run(read, &err), GM_OK);
  for (uint64_t i = 0; i < FILES; i++) assert_int_equal(f.seen[i], sizes[i]);
  assert_int_equal(room.refused, 5);
  gm__read_end(read);
  room.late = 0;
  room.refuse_at = room.taken + 3;
  for (int workers = 0; workers < 5; workers += 4) {
    room.refuse_at = room.taken + 3;
    roomed_files();
    check_read_fails((uint32_t)workers, GM_ERR_DRIVER, "there is none", 0);
  }
}

static void test_memory_of_pieces_that_nobody_got_is_given_back(void **state) {
  (void)state;
  open_files(GM_WAY_CACHE);
  for (uint32_t workers = 0; workers < 5; workers += 4) {
    roomed_files();
    const int taken = room.taken, given = room.given;
    int mine = 0;
    gm__read *read = start(workers);
    gm__read_piece *piece = NULL;
    assert_int_equal(gm__read_next(read, GM__NEVER, &piece, NULL), GM_OK);
    free(piece->memory.host);
    mine++;
    gm__read_end(read); /* in the middle */
    assert_int_equal(room.taken - taken, room.given - given + mine);
  }
}

static void test_a_failure_gives_all_memory_back(void **state) {
  (void)state;
  open_files(GM_WAY_CACHE);
  for (int workers = 0; workers < 5; workers += 4) {
    roomed_files();
    played_reads.broken_at = 200000;
    check_read_fails((uint32_t)workers, GM_ERR_IO, "at byte 200000", 0);
  }
}

/* ---- the end ---- */

static gm__read *to_cancel;
static void cancel_it(void) { gm__read_cancel(to_cancel); }

static void test_nothing_is_begun_after_a_cancel(void **state) {
  (void)state;
  for (int workers = 0; workers < 5; workers += 4) {
    played_reads_begin();
    open_files(GM_WAY_CACHE);
    no_ranges();
    add_range(0, 0, sizes[0], f.space + GUARD);
    gm_error err = {0};
    played_reads.resident = 1000;
    to_cancel = start(0);
    gm__read_end(to_cancel);
    to_cancel = start((uint32_t)workers);
    played_reads.act = cancel_it;
    if (workers) gm__read_cancel(to_cancel);
    if (!workers) played_reads.act_at = 5;
    assert_int_equal(run(to_cancel, &err), GM_ERR_CANCELLED);
    assert_true(played_reads.reads <= (workers ? GM__READ_FLIGHT : 5));
    gm__read_end(to_cancel);
  }
}

static void test_without_host_memory(void **state) {
  (void)state;
  gm_status status = GM_ERR_OUT_OF_HOST_MEMORY;
  const char *path = temp_folder_join(&folder, "0");
  for (size_t n = 1; status != GM_OK; n++) {
    gm_file *file = NULL;
    gm__read *read = NULL;
    f.host.fail_at = atomic_load(&f.host.calls) + n;
    f.host.fail_count = 1;
    status = gm__file_open(&f.host.services, path, GM_WAY_AUTO, &file, NULL);
    const gm__read_range range = {.file = file, .bytes = 10, .to = f.space};
    const gm__read_params params = {.services = &f.host.services, .workers = 2};
    if (status == GM_OK) status = gm__read_start(&range, 1, &params, &read, NULL);
    f.host.fail_at = 0;
    assert_true(status == GM_OK || status == GM_ERR_OUT_OF_HOST_MEMORY);
    gm__read_end(read);
    gm_file_close(file);
  }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(test_a_byte_that_cannot_be_read_is_named),
      TEST(test_a_direct_read_that_fails_is_done_again),
      TEST(test_a_file_cut_anywhere),
      TEST(test_a_file_that_changes_while_it_is_read),
      TEST(test_a_file_that_is_replaced),
      TEST(test_memory_comes_late_or_not),
      TEST(test_memory_of_pieces_that_nobody_got_is_given_back),
      TEST(test_a_failure_gives_all_memory_back),
      TEST(test_nothing_is_begun_after_a_cancel),
      TEST(test_without_host_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
