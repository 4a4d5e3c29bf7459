/* Open files: every way to their bytes, wherever these begin, and what is no file that gm reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gm/file.h"
#include "support/file_bytes.h"
#include "support/played_reads.h"
#include "support/random.h"
#include "support/test_folder.h"

enum { BYTES = 3 * 4096 + 77, ROOM = BYTES + 8192 };

static const gm_way ways[] = {GM_WAY_AUTO, GM_WAY_CACHE, GM_WAY_DIRECT, GM_WAY_MAP};

static unsigned char room[ROOM] __attribute__((aligned(4096)));

static int setup(void **state) {
  played_reads_begin();
  return folder_setup(state);
}

static int teardown(void **state) {
  played_reads_end();
  return folder_teardown(state);
}

/* The bytes arrive, and none beside them changes. */
static void check_read(gm_file *file, uint64_t offset, size_t lead, uint64_t bytes) {
  gm_error err;
  memset(room, 0x5a, sizeof room);
  if (gm_file_read(file, offset, room + lead, bytes, &err) != GM_OK) fail_msg("%s", err.message);
  for (size_t i = 0; i < sizeof room; i++) {
    const bool inside = i >= lead && i < lead + bytes;
    const unsigned char wanted = inside ? file_byte(0, offset + i - lead) : 0x5a;
    if (room[i] != wanted)
      fail_msg("byte %zu of %llu at %llu", i, (unsigned long long)bytes, (unsigned long long)offset);
  }
}

static void check_ranges(gm_way way) {
  static const uint64_t offsets[] = {0, 1, 4095, 4096, 4097, 8192, BYTES - 1, BYTES};
  static const uint64_t lengths[] = {0, 1, 4095, 4096, 4097, 8192, BYTES};
  gm_file *file = NULL;
  uint64_t seed = 1;
  assert_int_equal(gm_file_open(temp_folder_join(&folder, "f"), way, &file, NULL), GM_OK);
  assert_int_equal(gm_file_size(file), BYTES);
  for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
    for (size_t j = 0; j < sizeof lengths / sizeof *lengths; j++) {
      if (lengths[j] > BYTES - offsets[i]) continue;
      check_read(file, offsets[i], offsets[i] % 4096, lengths[j]); /* as it lies in the file */
      check_read(file, offsets[i], test_random(&seed) % 4096, lengths[j]);
    }
  }
  gm_file_close(file);
}

static void test_any_range_by_every_way(void **state) {
  (void)state;
  file_bytes_write(&folder, "f", 0, BYTES);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) check_ranges(ways[i]);
  played_reads.resident = 0; /* AUTO goes past the page cache */
  check_ranges(GM_WAY_AUTO);
}

static void test_short_and_interrupted_reads(void **state) {
  (void)state;
  file_bytes_write(&folder, "f", 0, BYTES);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    played_reads_begin();
    played_reads.short_reads = played_reads.interrupts = true;
    check_ranges(ways[i]);
    played_reads.odd_direct = true;
    check_ranges(ways[i]);
  }
}

static void test_direct_reads_that_the_file_system_refuses(void **state) {
  (void)state;
  gm_file *file = NULL;
  file_bytes_write(&folder, "f", 0, BYTES);
  played_reads.no_direct = true;
  played_reads.resident = 0;
  for (int automatic = 0; automatic < 2; automatic++) {
    const gm_way way = automatic ? GM_WAY_AUTO : GM_WAY_DIRECT;
    assert_int_equal(gm_file_open(temp_folder_join(&folder, "f"), way, &file, NULL), GM_OK);
    assert_string_equal(gm_file_why(file), "");
    check_read(file, 4096, 4096, 8192);
    assert_non_null(strstr(gm_file_why(file), "/f: its file system has no direct reads"));
    check_read(file, 0, 0, BYTES);
    gm_file_close(file);
  }
  assert_int_equal(played_reads.direct_reads, 0);
}

static void test_the_middle_goes_past_the_page_cache(void **state) {
  (void)state;
  gm_file *file = NULL;
  file_bytes_write(&folder, "f", 0, BYTES);
  assert_int_equal(gm_file_open(temp_folder_join(&folder, "f"), GM_WAY_DIRECT, &file, NULL), GM_OK);
  check_read(file, 4000, 4000, 4096 + 200); /* 96 bytes, a block, 104 bytes */
  assert_int_equal(played_reads.direct_bytes, 4096);
  assert_int_equal(played_reads.cached_bytes, 200);
  check_read(file, 4000, 4001, 4096 + 200); /* three blocks, copied */
  assert_int_equal(played_reads.direct_bytes, 4 * 4096);
  assert_int_equal(played_reads.cached_bytes, 200);
  gm_file_close(file);
}

static void check_refused(const char *path, gm_way way, gm_status wanted, const char *words) {
  gm_file *file = NULL;
  gm_error err;
  assert_int_equal(gm_file_open(path, way, &file, &err), wanted);
  assert_null(file);
  if (!strstr(err.message, words)) fail_msg("got \"%s\", not \"%s\"", err.message, words);
}

static void test_what_is_no_file_to_read(void **state) {
  (void)state;
  check_refused(NULL, GM_WAY_AUTO, GM_ERR_INVALID_ARGUMENT, "`path` is NULL");
  check_refused("x", (gm_way)9, GM_ERR_INVALID_ARGUMENT, "`way` is 9, no gm_way");
  check_refused("x", GM_WAY_GDS, GM_ERR_NOT_SUPPORTED, "comes with a later version");
  assert_int_equal(mkfifo(temp_folder_join(&folder, "pipe"), 0600), 0);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    check_refused(temp_folder_join(&folder, "none"), ways[i], GM_ERR_NOT_FOUND, "no such file");
    check_refused(folder.path, ways[i], GM_ERR_IO, "is a folder");
    check_refused(temp_folder_join(&folder, "pipe"), ways[i], GM_ERR_IO, "is a pipe");
    check_refused("/dev/null", ways[i], GM_ERR_IO, "is a device");
  }
}

static void test_wrong_questions(void **state) {
  (void)state;
  gm_file *file = NULL;
  gm_error err;
  file_bytes_write(&folder, "f", 0, 10);
  assert_int_equal(gm_file_open("x", GM_WAY_AUTO, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_file_open(temp_folder_join(&folder, "f"), GM_WAY_AUTO, &file, NULL), GM_OK);
  assert_int_equal(gm_file_read(NULL, 0, room, 1, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_file_read(file, 0, NULL, 1, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_file_read(file, 0, NULL, 0, &err), GM_OK);
  assert_int_equal(gm_file_read(file, 3, room, 8, &err), GM_ERR_INVALID_ARGUMENT);
  assert_string_equal(err.message, "8 bytes at 3 end behind the file, which has 10");
  assert_int_equal(gm_file_read(file, 11, room, 0, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_file_read(file, 2, room, UINT64_MAX, &err), GM_ERR_INVALID_ARGUMENT);
  gm_file_close(file);
  gm_file_close(NULL);
  assert_int_equal(gm_file_size(NULL), 0);
  assert_string_equal(gm_file_why(NULL), "");
}

static void test_a_file_of_nothing(void **state) {
  (void)state;
  file_bytes_write(&folder, "f", 0, 0);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    gm_file *file = NULL;
    assert_int_equal(gm_file_open(temp_folder_join(&folder, "f"), ways[i], &file, NULL), GM_OK);
    assert_int_equal(gm_file_read(file, 0, room, 0, NULL), GM_OK);
    gm_file_close(file);
  }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(test_any_range_by_every_way),
      TEST(test_short_and_interrupted_reads),
      TEST(test_direct_reads_that_the_file_system_refuses),
      TEST(test_the_middle_goes_past_the_page_cache),
      TEST(test_what_is_no_file_to_read),
      TEST(test_wrong_questions),
      TEST(test_a_file_of_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
