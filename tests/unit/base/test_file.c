/* Reading small files: what is there, what is not, and what must not be read. */
#include <fcntl.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/file.h"
#include "support/tree.h"

typedef struct seen {
  size_t count;
  size_t longest;
  size_t stop_at;
  char last[GM__FILE_LONG_LINE_SIZE];
} seen;

static bool see(void *user, char *line) {
  seen *lines = user;
  lines->count++;
  if (strlen(line) > lines->longest) lines->longest = strlen(line);
  snprintf(lines->last, sizeof lines->last, "%s", line);
  return lines->count != lines->stop_at;
}

static seen lines_of(temp_folder *root, const char *path, gm__file_answer want) {
  seen lines = {0};
  assert_int_equal(gm__file_lines(root->path, path, see, &lines), want);
  return lines;
}

static void test_a_text_is_read_whole_or_not_at_all(void **state) {
  temp_folder *root = *state;
  char buffer[8];
  tree_put(root, "/a/seven", "1234567");
  assert_int_equal(gm__file_text(root->path, "/a/seven", buffer, sizeof buffer), GM__FILE_OK);
  assert_string_equal(buffer, "1234567");
  tree_put(root, "/a/eight", "12345678");
  assert_int_equal(gm__file_text(root->path, "/a/eight", buffer, sizeof buffer), GM__FILE_TOO_LARGE);
  assert_string_equal(buffer, "");
  tree_put(root, "/a/empty", "");
  assert_int_equal(gm__file_text(root->path, "/a/empty", buffer, sizeof buffer), GM__FILE_OK);
  assert_string_equal(buffer, "");
}

static void test_absent_and_unreadable_are_different(void **state) {
  temp_folder *root = *state;
  char buffer[8] = "x", path[400];
  tree_put(root, "/a/file", "1");
  assert_int_equal(gm__file_text(root->path, "/a/none", buffer, sizeof buffer), GM__FILE_ABSENT);
  assert_string_equal(buffer, "");
  assert_int_equal(gm__file_text(root->path, "/a/file/below", buffer, sizeof buffer), GM__FILE_ABSENT);
  assert_int_equal(gm__file_text(root->path, "/a", buffer, sizeof buffer), GM__FILE_UNREADABLE);
  snprintf(path, sizeof path, "%s/loop", root->path);
  assert_int_equal(symlink("loop", path), 0);
  assert_int_equal(gm__file_text(root->path, "/loop", buffer, sizeof buffer), GM__FILE_UNREADABLE);
}

static void test_a_pipe_or_a_device_is_not_read(void **state) {
  temp_folder *root = *state;
  char buffer[8], path[400];
  snprintf(path, sizeof path, "%s/pipe", root->path);
  assert_int_equal(mkfifo(path, 0600), 0);
  assert_int_equal(gm__file_text(root->path, "/pipe", buffer, sizeof buffer), GM__FILE_UNREADABLE);
  snprintf(path, sizeof path, "%s/zero", root->path);
  assert_int_equal(symlink("/dev/zero", path), 0);
  assert_int_equal(gm__file_text(root->path, "/zero", buffer, sizeof buffer), GM__FILE_UNREADABLE);
  lines_of(root, "/zero", GM__FILE_UNREADABLE);
}

static void test_a_path_that_is_too_long_is_unreadable(void **state) {
  temp_folder *root = *state;
  char buffer[8], path[2 * GM__FILE_PATH_SIZE];
  memset(path, 'a', sizeof path);
  path[0] = '/';
  path[sizeof path - 1] = 0;
  assert_int_equal(gm__file_text(root->path, path, buffer, sizeof buffer), GM__FILE_UNREADABLE);
  assert_int_equal(gm__file_names(root->path, path, NULL, NULL), GM__FILE_UNREADABLE);
}

static void test_every_line_is_visited_also_the_last_one(void **state) {
  temp_folder *root = *state;
  tree_put(root, "/lines", "one\n\nthree");
  seen lines = lines_of(root, "/lines", GM__FILE_OK);
  assert_int_equal(lines.count, 3);
  assert_string_equal(lines.last, "three");
  tree_put(root, "/lines", "one\ntwo\n");
  assert_int_equal(lines_of(root, "/lines", GM__FILE_OK).count, 2);
  lines = (seen){.stop_at = 1};
  assert_int_equal(gm__file_lines(root->path, "/lines", see, &lines), GM__FILE_OK);
  assert_int_equal(lines.count, 1);
  assert_string_equal(lines.last, "one");
}

static void test_lines_with_a_nul_are_left_out(void **state) {
  temp_folder *root = *state;
  static const char bytes[] = "a\nb\0c\n\0\nd\n";
  tree_put_bytes(root, "/nul", bytes, sizeof bytes - 1);
  seen lines = lines_of(root, "/nul", GM__FILE_OK);
  assert_int_equal(lines.count, 2);
  assert_string_equal(lines.last, "d");
}

/* A line of a megabyte, and lines of every length around the size of the window. */
static void test_long_lines_are_left_out_and_the_next_is_not(void **state) {
  temp_folder *root = *state;
  size_t mega = (size_t)1 << 20;
  char *text = malloc(mega + 64);
  assert_non_null(text);
  memset(text, 'x', mega);
  memcpy(text + mega, "\nlast", 6);
  tree_put(root, "/long", text);
  seen lines = lines_of(root, "/long", GM__FILE_OK);
  assert_int_equal(lines.count, 1);
  assert_string_equal(lines.last, "last");
  for (size_t length = GM__FILE_LINE_SIZE - 4; length < GM__FILE_LINE_SIZE + 4; length++) {
    memcpy(text + length, "\nlast", 6);
    tree_put(root, "/long", text);
    lines = lines_of(root, "/long", GM__FILE_OK);
    assert_int_equal(lines.count, length <= GM__FILE_LINE_SIZE - 2 ? 2 : 1);
    assert_string_equal(lines.last, "last");
    text[length] = 'x';
  }
  memset(text, 'x', mega);
  for (size_t length = GM__FILE_LONG_LINE_SIZE - 4; length < GM__FILE_LONG_LINE_SIZE + 4; length++) {
    char room[GM__FILE_LONG_LINE_SIZE];
    memcpy(text + length, "\nlast", 6);
    tree_put(root, "/long", text);
    lines = (seen){0};
    assert_int_equal(gm__file_long_lines(root->path, "/long", room, see, &lines), GM__FILE_OK);
    assert_int_equal(lines.count, length <= GM__FILE_LONG_LINE_SIZE - 2 ? 2 : 1);
    assert_string_equal(lines.last, "last");
    text[length] = 'x';
  }
  free(text);
}

static void test_a_file_without_end_is_given_up(void **state) {
  temp_folder *root = *state;
  char path[400];
  tree_put(root, "/sparse", "first\n");
  snprintf(path, sizeof path, "%s/sparse", root->path);
  assert_int_equal(truncate(path, (off_t)4 * GM__FILE_BYTES_MAX), 0);
  assert_int_equal(lines_of(root, "/sparse", GM__FILE_TOO_LARGE).count, 1);
}

static bool count_name(void *user, const char *name) {
  size_t *count = user;
  assert_true(strcmp(name, ".") != 0 && strcmp(name, "..") != 0);
  return ++*count != 2;
}

static void test_names_of_a_directory(void **state) {
  temp_folder *root = *state;
  size_t count = 0;
  tree_put(root, "/d/one", "");
  assert_int_equal(gm__file_names(root->path, "/d", count_name, &count), GM__FILE_OK);
  assert_int_equal(count, 1);
  tree_put(root, "/d/two", "");
  tree_put(root, "/d/three", "");
  count = 0;
  assert_int_equal(gm__file_names(root->path, "/d", count_name, &count), GM__FILE_OK);
  assert_int_equal(count, 2);
  assert_int_equal(gm__file_names(root->path, "/none", count_name, &count), GM__FILE_ABSENT);
  assert_int_equal(gm__file_names(root->path, "/d/one", count_name, &count), GM__FILE_ABSENT);
}

static void test_a_null_root_is_the_machine(void **state) {
  (void)state;
  char buffer[4096];
  assert_int_equal(gm__file_text(NULL, "/proc/self/stat", buffer, sizeof buffer), GM__FILE_OK);
  assert_int_equal(strtol(buffer, NULL, 10), getpid());
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_set_up, tree_tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_a_text_is_read_whole_or_not_at_all),
      TEST(test_absent_and_unreadable_are_different),
      TEST(test_a_pipe_or_a_device_is_not_read),
      TEST(test_a_path_that_is_too_long_is_unreadable),
      TEST(test_every_line_is_visited_also_the_last_one),
      TEST(test_lines_with_a_nul_are_left_out),
      TEST(test_long_lines_are_left_out_and_the_next_is_not),
      TEST(test_a_file_without_end_is_given_up),
      TEST(test_names_of_a_directory),
      TEST(test_a_null_root_is_the_machine),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
