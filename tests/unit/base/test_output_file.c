/* Files that a library writes: the one for what is only needed meanwhile. */
#include "core/base/output_file.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/temp_folder.h"

/* Can the folder's file system make files without a name? */
static bool has_nameless(const char *folder) {
  const int fd = open(folder, O_RDWR | O_TMPFILE, 0600);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

/* A signal may end the process at any time: nothing must be left then. */
static void test_a_scratch_file_never_has_a_name(void **state) {
  (void)state;
  temp_folder root;
  gm__output_file file;
  gm_error err;
  char events[4096], text[4] = "abc", read_back[4] = "";
  temp_folder_make(&root);
  const int watch = inotify_init1(IN_NONBLOCK);
  assert_true(watch >= 0 && inotify_add_watch(watch, root.path, IN_CREATE) >= 0);
  assert_int_equal(gm__output_file_scratch(temp_folder_join(&root, "trace"), &file, &err), GM_OK);
  if (has_nameless(root.path)) assert_true(read(watch, events, sizeof events) < 0);
  assert_int_equal(gm__output_file_write_at(&file, "trace", 0, text, sizeof text, &err), GM_OK);
  assert_int_equal(gm__output_file_read_at(&file, "trace", 0, read_back, sizeof read_back, &err), GM_OK);
  assert_string_equal(read_back, text);
  assert_int_equal(gm__output_file_close(&file, "trace", &err), GM_OK);
  assert_int_equal(rmdir(root.path), 0); /* it is empty */
  close(watch);
}

static void test_no_such_folder(void **state) {
  (void)state;
  gm__output_file file;
  gm_error err;
  assert_int_equal(gm__output_file_scratch("/no/such/folder/trace", &file, &err), GM_ERR_NOT_FOUND);
  assert_non_null(strstr(err.message, "no such folder"));
}

/* A daemon may have closed its standard input: descriptor 0 is a file's as any other. */
static void test_descriptor_0_is_one_of_many(void **state) {
  (void)state;
  temp_folder root;
  gm__output_file file;
  gm_error err;
  char read_back[2] = "";
  temp_folder_make(&root);
  const int input = dup(0);
  if (input >= 0) close(0);
  assert_int_equal(gm__output_file_scratch(temp_folder_join(&root, "trace"), &file, &err), GM_OK);
  assert_int_equal(file.fd, 0);
  assert_int_equal(gm__output_file_write_at(&file, "trace", 0, "a", 2, &err), GM_OK);
  assert_int_equal(gm__output_file_read_at(&file, "trace", 0, read_back, 2, &err), GM_OK);
  assert_string_equal(read_back, "a");
  assert_int_equal(gm__output_file_close(&file, "trace", &err), GM_OK);
  assert_true(fcntl(0, F_GETFD) < 0);
  assert_int_equal(gm__output_file_open(temp_folder_join(&root, "named"), &file, &err), GM_OK);
  assert_int_equal(file.fd, 0);
  assert_int_equal(gm__output_file_close(&file, "named", &err), GM_OK);
  assert_true(fcntl(0, F_GETFD) < 0);
  if (input >= 0) dup2(input, 0);
  if (input >= 0) close(input);
  unlink(temp_folder_join(&root, "named"));
  temp_folder_remove(&root);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_scratch_file_never_has_a_name),
                                     cmocka_unit_test(test_no_such_folder),
                                     cmocka_unit_test(test_descriptor_0_is_one_of_many)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
