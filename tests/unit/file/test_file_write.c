/* New files: every range arrives wherever it begins, and the name has the earlier file or the whole new one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>

#include "core/base/thread.h"
#include "core/file/side_file.h"
#include "gm/file.h"
#include "support/file_bytes.h"
#include "support/random.h"
#include "support/test_folder.h"

enum { LARGE = (3 << 20) + 77, ROOM = LARGE + 8192 };

static unsigned char room[ROOM] __attribute__((aligned(4096)));
static atomic_ullong direct_bytes; /* of writes at pages */

gm_status __real_gm__side_file_write(const gm__side_file *file, uint64_t at, const void *from, uint64_t bytes,
                                     uint64_t *out_direct, gm_error *err);
gm_status __wrap_gm__side_file_write(const gm__side_file *file, uint64_t at, const void *from, uint64_t bytes,
                                     uint64_t *out_direct, gm_error *err);
gm_status __wrap_gm__side_file_write(const gm__side_file *file, uint64_t at, const void *from, uint64_t bytes,
                                     uint64_t *out_direct, gm_error *err) {
  const gm_status status = __real_gm__side_file_write(file, at, from, bytes, out_direct, err);
  atomic_fetch_add(&direct_bytes, *out_direct);
  return status;
}

static void ok(gm_status status, const gm_error *err) {
  if (status != GM_OK) fail_msg("%s", err->message);
}

static gm_file *create(const char *name, uint64_t bytes, gm_way way) {
  gm_file *file = NULL;
  gm_error err = {0};
  ok(gm_file_create(temp_folder_join(&folder, name), bytes, way, &file, &err), &err);
  return file;
}

/* Bytes of file number `number`, from memory that begins `lead` bytes behind a page. */
static gm_status write_from(gm_file *file, uint64_t number, uint64_t offset, size_t lead, uint64_t bytes,
                            gm_error *err) {
  for (uint64_t i = 0; i < bytes; i++) room[lead + i] = file_byte(number, offset + i);
  return gm_file_write(file, offset, room + lead, bytes, err);
}

static void commit(gm_file *file) {
  gm_error err = {0};
  ok(gm_file_commit(file, &err), &err);
  gm_file_close(file);
}

/* The file of that name has the bytes of number `number`. */
static void check_file(const char *name, uint64_t number, uint64_t bytes) {
  gm_file *file = NULL;
  gm_error err = {0};
  ok(gm_file_open(temp_folder_join(&folder, name), GM_WAY_CACHE, &file, &err), &err);
  assert_int_equal(gm_file_size(file), bytes);
  ok(gm_file_read(file, 0, room, bytes, &err), &err);
  gm_file_close(file);
  for (uint64_t i = 0; i < bytes; i++) {
    if (room[i] != file_byte(number, i)) fail_msg("byte %llu of %s", (unsigned long long)i, name);
  }
}

static int files_there(void) {
  int count = 0;
  gm__data_place place;
  assert_int_equal(gm__data_place_open(temp_folder_join(&folder, "f"), &place, NULL), GM_OK);
  DIR *stream = fdopendir(dup(place.folder));
  rewinddir(stream);
  for (const struct dirent *at; (at = readdir(stream)) != NULL;) count += at->d_name[0] != '.';
  closedir(stream);
  gm__data_place_close(&place);
  return count;
}

/* ---- bytes ---- */

/* Parts of any size, in any order, from memory anywhere, by each way. */
static void check_parts(gm_way way, uint64_t seed) {
  enum { BYTES = 300000, CUTS = 12 };
  uint64_t cuts[CUTS + 2] = {0};
  gm_file *file = create("f", seed % 2 ? BYTES + 5000 : 0, way);
  for (int i = 1; i <= CUTS; i++) {
    const uint64_t step = test_random(&seed) % 3 ? test_random(&seed) % 70000 : 4096 * (test_random(&seed) % 9);
    cuts[i] = cuts[i - 1] + step < BYTES ? cuts[i - 1] + step : BYTES;
  }
  cuts[CUTS + 1] = BYTES;
  for (int i = CUTS; i >= 0; i--) {
    gm_error err = {0};
    const size_t lead = test_random(&seed) % 3 ? test_random(&seed) % 4096 : cuts[i] % 4096;
    ok(write_from(file, 1, cuts[i], lead, cuts[i + 1] - cuts[i], &err), &err);
  }
  assert_int_equal(gm_file_size(file), BYTES);
  commit(file);
  check_file("f", 1, BYTES);
}

static void test_any_parts_by_every_way(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    check_parts(GM_WAY_AUTO, seed);
    check_parts(GM_WAY_CACHE, seed);
    check_parts(GM_WAY_DIRECT, seed);
  }
}

static void test_whole_pages_go_past_the_page_cache(void **state) {
  (void)state;
  for (size_t lead = 0; lead < 2; lead++) { /* at a page of memory, and beside one */
    gm_error err = {0};
    gm_file *file = create("f", 0, GM_WAY_AUTO);
    direct_bytes = 0;
    ok(write_from(file, 2, 0, lead, LARGE, &err), &err);
    const bool takes_direct = !*gm_file_why(file);
    assert_int_equal(direct_bytes, takes_direct ? LARGE - 77 : 0);
    commit(file);
    check_file("f", 2, LARGE);
  }
  gm_error err = {0};
  gm_file *file = create("f", 0, GM_WAY_CACHE);
  direct_bytes = 0;
  ok(write_from(file, 3, 0, 0, 8192, &err), &err);
  assert_int_equal(direct_bytes, 0);
  assert_string_equal(gm_file_why(file), "");
  commit(file);
}

static void test_what_nobody_writes_is_zero(void **state) {
  (void)state;
  static const unsigned char one[] = "x";
  gm_file *file = create("f", 1 << 20, GM_WAY_AUTO), *empty = create("empty", 1 << 20, GM_WAY_AUTO);
  assert_int_equal(gm_file_size(file), 0);
  assert_int_equal(gm_file_write(file, 10000, one, 1, NULL), GM_OK);
  assert_int_equal(gm_file_write(file, 20000, NULL, 0, NULL), GM_OK); /* nothing */
  commit(file);
  commit(empty);
  assert_int_equal(gm_file_open(temp_folder_join(&folder, "f"), GM_WAY_CACHE, &file, NULL), GM_OK);
  assert_int_equal(gm_file_size(file), 10001); /* what was reserved and not used goes */
  assert_int_equal(gm_file_read(file, 0, room, 10001, NULL), GM_OK);
  for (int i = 0; i <= 10000; i++) assert_int_equal(room[i], i == 10000 ? 'x' : 0);
  gm_file_close(file);
  check_file("empty", 0, 0);
}

typedef struct part_writer {
  gm__thread thread;
  gm_file *file;
  unsigned char *bytes;
  uint64_t from, until;
} part_writer;

static void write_parts(void *arg) {
  const part_writer *self = arg;
  for (uint64_t at = self->from, part; at < self->until; at += part) {
    part = self->until - at < 100000 ? self->until - at : 100000;
    if (gm_file_write(self->file, at, self->bytes + at, part, NULL) != GM_OK) abort();
  }
}

/* Neighbours share pages of the file, and no byte. */
static void test_several_threads_write_one_file(void **state) {
  (void)state;
  enum { THREADS = 4 };
  part_writer writers[THREADS];
  unsigned char *bytes = malloc(LARGE);
  gm_file *file = create("f", LARGE, GM_WAY_AUTO);
  for (uint64_t i = 0; i < LARGE; i++) bytes[i] = file_byte(4, i);
  for (uint64_t i = 0; i < THREADS; i++) {
    writers[i] = (part_writer){
        .file = file, .bytes = bytes, .from = i * (LARGE / THREADS), .until = (i + 1) * (LARGE / THREADS)};
    if (i + 1 == THREADS) writers[i].until = LARGE;
    assert_int_equal(gm__thread_create(&writers[i].thread, "t", write_parts, &writers[i], NULL), GM_OK);
  }
  for (int i = 0; i < THREADS; i++) gm__thread_join(&writers[i].thread);
  commit(file);
  check_file("f", 4, LARGE);
  free(bytes);
}

/* ---- the name ---- */

static void test_the_earlier_file_stays_until_the_commit(void **state) {
  (void)state;
  gm_error err = {0};
  file_bytes_write(&folder, "f", 5, 5000);
  gm_file *file = create("f", 0, GM_WAY_AUTO), *other = NULL;
  ok(write_from(file, 6, 0, 0, 9000, &err), &err);
  check_file("f", 5, 5000);
  assert_int_equal(gm_file_create(temp_folder_join(&folder, "f"), 0, GM_WAY_AUTO, &other, &err), GM_ERR_BUSY);
  assert_null(other);
  gm_file_close(file);
  check_file("f", 5, 5000);
  assert_int_equal(files_there(), 1);
  file = create("f", 0, GM_WAY_AUTO);
  ok(write_from(file, 6, 0, 0, 9000, &err), &err);
  ok(gm_file_commit(file, &err), &err);
  check_file("f", 6, 9000); /* also while the handle is open */
  assert_int_equal(gm_file_write(file, 0, room, 1, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_file_commit(file, NULL), GM_ERR_INVALID_ARGUMENT);
  gm_file_close(file);
  check_file("f", 6, 9000);
  assert_int_equal(files_there(), 1);
}

static void test_the_new_file_is_as_open_as_the_earlier_one(void **state) {
  (void)state;
  struct stat st;
  const char *path = file_bytes_write(&folder, "f", 7, 10);
  assert_int_equal(chmod(path, 0644), 0);
  commit(create("f", 0, GM_WAY_AUTO));
  assert_int_equal(stat(temp_folder_join(&folder, "f"), &st), 0);
  assert_int_equal(st.st_mode & 0777, 0644);
  commit(create("new", 0, GM_WAY_AUTO));
  assert_int_equal(stat(temp_folder_join(&folder, "new"), &st), 0);
  assert_int_equal(st.st_mode & 0777, 0600);
}

static void test_an_earlier_file_that_is_moved_meanwhile(void **state) {
  (void)state;
  gm_error err = {0};
  file_bytes_write(&folder, "f", 8, 100);
  gm_file *file = create("f", 0, GM_WAY_AUTO);
  ok(write_from(file, 9, 0, 0, 100, &err), &err);
  assert_int_equal(rename(temp_folder_join(&folder, "f"), temp_folder_join(&folder, "g")), 0);
  assert_int_equal(gm_file_commit(file, &err), GM_ERR_IO);
  assert_non_null(strstr(err.message, "somebody moved or removed it"));
  assert_int_equal(gm_file_commit(file, &err), GM_ERR_IO); /* it stays so */
  gm_file_close(file);
  check_file("g", 8, 100);
  assert_int_equal(files_there(), 1);
}

/* ---- what it refuses ---- */

static void test_what_cannot_be_written(void **state) {
  (void)state;
  gm_error err = {0};
  gm_file *file = NULL;
  char path[512];
  snprintf(path, sizeof path, "%s", temp_folder_join(&folder, "f"));
  assert_int_equal(gm_file_create(NULL, 0, GM_WAY_AUTO, &file, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_file_create(path, 0, GM_WAY_AUTO, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_file_create(path, 0, GM_WAY_MAP, &file, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_file_create(path, 0, GM_WAY_GDS, &file, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_file_create(temp_folder_join(&folder, "no/f"), 0, GM_WAY_AUTO, &file, &err), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_file_create(folder.path, 0, GM_WAY_AUTO, &file, &err), GM_ERR_IO);
  assert_int_equal(mkfifo(temp_folder_join(&folder, "pipe"), 0600), 0);
  assert_int_equal(gm_file_create(temp_folder_join(&folder, "pipe"), 0, GM_WAY_AUTO, &file, &err), GM_ERR_IO);
  assert_int_equal(unlink(temp_folder_join(&folder, "pipe")), 0);
  assert_null(file);
  assert_int_equal(gm_file_write(NULL, 0, "", 1, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_file_commit(NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  file = create("f", 0, GM_WAY_AUTO);
  assert_int_equal(gm_file_write(file, 0, NULL, 1, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_file_write(file, UINT64_MAX, "", 1, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_file_write(file, 1, "", UINT64_MAX, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_file_read(file, 0, room, 0, NULL), GM_ERR_INVALID_ARGUMENT);
  commit(file); /* none of that was a write that failed */
  assert_int_equal(gm_file_open(path, GM_WAY_AUTO, &file, NULL), GM_OK);
  assert_int_equal(gm_file_write(file, 0, "", 1, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_file_commit(file, &err), GM_ERR_INVALID_ARGUMENT);
  gm_file_close(file);
  assert_int_equal(files_there(), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_any_parts_by_every_way, folder_setup, folder_teardown),
      cmocka_unit_test_setup_teardown(test_whole_pages_go_past_the_page_cache, folder_setup, folder_teardown),
      cmocka_unit_test_setup_teardown(test_what_nobody_writes_is_zero, folder_setup, folder_teardown),
      cmocka_unit_test_setup_teardown(test_several_threads_write_one_file, folder_setup, folder_teardown),
      cmocka_unit_test_setup_teardown(test_the_earlier_file_stays_until_the_commit, folder_setup, folder_teardown),
      cmocka_unit_test_setup_teardown(test_the_new_file_is_as_open_as_the_earlier_one, folder_setup, folder_teardown),
      cmocka_unit_test_setup_teardown(test_an_earlier_file_that_is_moved_meanwhile, folder_setup, folder_teardown),
      cmocka_unit_test_setup_teardown(test_what_cannot_be_written, folder_setup, folder_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
