/* Opening and reading files that a stranger named. */
#include "core/base/input_file.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>

#include "support/test_folder.h"

static void test_a_file_is_opened_read_and_closed(void **state) {
  (void)state;
  const char *path = temp_folder_write(&folder, "f", "0123456789", 10);
  gm__input_file file;
  char got[4];
  assert_int_equal(gm__input_file_open(path, &file, NULL), GM_OK);
  assert_int_equal(file.bytes, 10);
  assert_int_equal(gm__input_file_read_at(&file, path, 3, got, 4, NULL), GM_OK);
  assert_memory_equal(got, "3456", 4);
  assert_int_equal(gm__input_file_read_at(&file, path, 10, got, 0, NULL), GM_OK);
  assert_int_equal(gm__input_file_check_size(&file, path, NULL), GM_OK);
  gm__input_file_close(&file);
  assert_int_equal(file.fd, -1);
  gm__input_file_close(&file);
}

static void test_a_file_that_shrank_is_an_error_with_the_place(void **state) {
  (void)state;
  const char *path = temp_folder_write(&folder, "f", "0123456789", 10);
  gm__input_file file;
  gm_error err;
  char got[10];
  assert_int_equal(gm__input_file_open(path, &file, NULL), GM_OK);
  assert_int_equal(truncate(path, 6), 0);
  assert_int_equal(gm__input_file_read_at(&file, path, 2, got, 8, &err), GM_ERR_IO);
  assert_non_null(strstr(err.message, "/f: ends at byte 6, it had 10 when it was opened"));
  assert_int_equal(gm__input_file_check_size(&file, path, &err), GM_ERR_IO);
  assert_non_null(strstr(err.message, "/f: has 6 bytes, it had 10 when it was opened"));
  gm__input_file_close(&file);
  assert_int_equal(gm__input_file_read_at(&file, path, 0, got, 1, &err), GM_ERR_IO);
  assert_int_equal(err.native_code, EBADF);
  assert_int_equal(gm__input_file_check_size(&file, path, &err), GM_ERR_IO);
}

static void check_refused(const char *path, gm_status wanted, const char *words) {
  gm__input_file file = {.fd = -7};
  gm_error err;
  assert_int_equal(gm__input_file_open(path, &file, &err), wanted);
  assert_int_equal(file.fd, -7);
  if (!strstr(err.message, words) || strncmp(err.message, path, strlen(path) < 300 ? strlen(path) : 300) != 0) {
    fail_msg("got \"%s\", not \"%s…%s\"", err.message, path, words);
  }
}

static void make_socket(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  assert_true(strlen(path) < sizeof address.sun_path);
  memcpy(address.sun_path, path, strlen(path) + 1);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(fd >= 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
  close(fd);
}

static void test_what_is_no_regular_file_is_refused_and_not_waited_for(void **state) {
  (void)state;
  check_refused(folder.path, GM_ERR_IO, "is a folder, a regular file is needed");
  check_refused("/dev/null", GM_ERR_IO, "is a device, a regular file is needed");
  const char *pipe_path = temp_folder_join(&folder, "pipe");
  assert_int_equal(mkfifo(pipe_path, 0600), 0);
  check_refused(pipe_path, GM_ERR_IO, "is a pipe, a regular file is needed");
  const char *socket_path = temp_folder_join(&folder, "socket");
  make_socket(socket_path);
  check_refused(socket_path, GM_ERR_IO, "is a socket or a device");
}

static void test_what_is_not_there_is_not_found(void **state) {
  (void)state;
  check_refused(temp_folder_join(&folder, "none"), GM_ERR_NOT_FOUND, "no such file");
  temp_folder_write(&folder, "f", "x", 1);
  check_refused(temp_folder_join(&folder, "f/g"), GM_ERR_NOT_FOUND, "is not a folder");
  char path[5000];
  memset(path, 'x', sizeof path);
  path[sizeof path - 1] = 0;
  check_refused(path, GM_ERR_IO, "");
}

static void test_symbolic_links_are_followed(void **state) {
  (void)state;
  temp_folder_write(&folder, "f", "x", 1);
  const char *link = temp_folder_join(&folder, "link");
  assert_int_equal(symlink("f", link), 0);
  gm__input_file file;
  assert_int_equal(gm__input_file_open(link, &file, NULL), GM_OK);
  gm__input_file_close(&file);
  const char *loop = temp_folder_join(&folder, "loop");
  assert_int_equal(symlink("loop", loop), 0);
  check_refused(loop, GM_ERR_IO, "too many symbolic links");
  const char *dangling = temp_folder_join(&folder, "dangling");
  assert_int_equal(symlink("nowhere", dangling), 0);
  check_refused(dangling, GM_ERR_NOT_FOUND, "no such file");
}

static void test_without_permission(void **state) {
  (void)state;
  const char *path = temp_folder_write(&folder, "secret", "x", 1);
  bool is_root = geteuid() == 0; /* root may read all, so it becomes nobody for this test */
  assert_int_equal(chmod(path, 0), 0);
  if (is_root) assert_int_equal(seteuid(65534), 0);
  gm__input_file file;
  gm_error err;
  gm_status status = gm__input_file_open(path, &file, &err);
  if (is_root) assert_int_equal(seteuid(0), 0);
  assert_int_equal(status, GM_ERR_IO);
  assert_int_equal(err.native_code, EACCES);
  assert_non_null(strstr(err.message, "/secret: permission denied"));
}

static void test_a_changed_file_is_not_the_same(void **state) {
  (void)state;
  const char *path = temp_folder_write(&folder, "f", "abc", 3);
  gm__input_file before, after;
  assert_int_equal(gm__input_file_open(path, &before, NULL), GM_OK);
  assert_int_equal(gm__input_file_open(path, &after, NULL), GM_OK);
  assert_true(gm__input_file_same(&before, &after));
  gm__input_file_close(&after);
  assert_int_equal(truncate(path, 2), 0);
  assert_int_equal(gm__input_file_open(path, &after, NULL), GM_OK);
  assert_false(gm__input_file_same(&before, &after));
  gm__input_file_close(&after);
  gm__input_file_close(&before);
}

static void test_folders_are_told_from_files(void **state) {
  (void)state;
  bool is_folder = false;
  assert_int_equal(gm__input_is_folder(folder.path, &is_folder, NULL), GM_OK);
  assert_true(is_folder);
  assert_int_equal(gm__input_is_folder(temp_folder_write(&folder, "f", "", 0), &is_folder, NULL), GM_OK);
  assert_false(is_folder);
  assert_int_equal(gm__input_is_folder(temp_folder_join(&folder, "none"), &is_folder, NULL), GM_ERR_NOT_FOUND);
}

static void test_a_mapping_is_read_and_its_end_watched(void **state) {
  (void)state;
  char text[10000];
  memset(text, 'x', sizeof text);
  text[9000] = 'y';
  const char *path = temp_folder_write(&folder, "f", text, sizeof text);
  gm__input_file file;
  const void *mapping = NULL;
  gm_error err;
  assert_int_equal(gm__input_file_open(path, &file, NULL), GM_OK);
  assert_int_equal(gm__input_file_map(&file, path, &mapping, &err), GM_OK);
  assert_int_equal(gm__input_file_touch(&file, path, mapping, 8999, 1001, &err), GM_OK);
  assert_int_equal(((const char *)mapping)[9000], 'y');
  assert_int_equal(gm__input_file_touch(&file, path, mapping, 10000, 0, &err), GM_OK);
  assert_int_equal(truncate(path, 100), 0);
  assert_int_equal(gm__input_file_touch(&file, path, mapping, 8999, 1001, &err), GM_ERR_IO);
  gm__input_file shorter = file;
  shorter.bytes = 100; /* the size is as expected, and the page is gone all the same */
  assert_int_equal(gm__input_file_touch(&shorter, path, mapping, 8999, 1001, &err), GM_ERR_IO);
  gm__input_file_unmap(&file, mapping);
  gm__input_file_unmap(&file, NULL);
  gm__input_file_close(&file);
  assert_int_equal(gm__input_file_map(&file, path, &mapping, &err), GM_ERR_IO);
}

static bool count_three(void *user, const char *name) {
  int *left = user;
  assert_true(strlen(name) > 0);
  return --*left > 0;
}

static void test_entries_are_visited_until_told_to_stop(void **state) {
  (void)state;
  temp_folder_write(&folder, "a", "", 0);
  temp_folder_write(&folder, "b", "", 0);
  int left = 3;
  assert_int_equal(gm__input_folder_each(folder.path, count_three, &left, NULL), GM_OK);
  assert_int_equal(left, 0);
  left = 100;
  assert_int_equal(gm__input_folder_each(folder.path, count_three, &left, NULL), GM_OK);
  assert_int_equal(left, 96); /* with "." and ".." */
  gm_error err;
  assert_int_equal(gm__input_folder_each(temp_folder_join(&folder, "none"), count_three, &left, &err),
                   GM_ERR_NOT_FOUND);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)
  const struct CMUnitTest tests[] = {
      TEST(test_a_file_is_opened_read_and_closed),
      TEST(test_a_file_that_shrank_is_an_error_with_the_place),
      TEST(test_what_is_no_regular_file_is_refused_and_not_waited_for),
      TEST(test_what_is_not_there_is_not_found),
      TEST(test_symbolic_links_are_followed),
      TEST(test_without_permission),
      TEST(test_a_changed_file_is_not_the_same),
      TEST(test_folders_are_told_from_files),
      TEST(test_a_mapping_is_read_and_its_end_watched),
      TEST(test_entries_are_visited_until_told_to_stop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
