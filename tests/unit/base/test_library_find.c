/* Finding a library by looking at files: a made-up system root, configuration files, what is no library, what is too
 * long. */
#include <elf.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/library.h"
#include "support/temp_folder.h"

static int make_root(void **state) {
  static temp_folder root;
  temp_folder_make(&root);
  temp_folder_dir(&root, "etc/ld.so.conf.d");
  temp_folder_dir(&root, "opt/vendor/lib");
  temp_folder_dir(&root, "usr/lib");
  *state = &root;
  return 0;
}

static int remove_root(void **state) {
  temp_folder_remove(*state);
  unsetenv("LD_LIBRARY_PATH");
  return 0;
}

/* Enough of a head to pass for a shared object. */
static void put_library(temp_folder *root, const char *at, unsigned char elf_class) {
  unsigned char head[64] = {0x7f, 'E', 'L', 'F'};
  head[EI_CLASS] = elf_class;
  temp_folder_write(root, at, head, sizeof head);
}

static const unsigned char own_class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
static const unsigned char other_class = sizeof(void *) == 8 ? ELFCLASS32 : ELFCLASS64;

static void put_text(temp_folder *root, const char *at, const char *text) {
  temp_folder_write(root, at, text, strlen(text));
}

static void check_found(temp_folder *root, const char *name, const char *at) {
  char found[PATH_MAX], expected[PATH_MAX];
  snprintf(expected, sizeof expected, "%s/%s", root->path, at);
  assert_true(gm__library_find(root->path, name, found, sizeof found));
  assert_string_equal(found, expected);
}

static void check_absent(temp_folder *root, const char *name) {
  char found[PATH_MAX] = "untouched";
  assert_false(gm__library_find(root->path, name, found, sizeof found));
  assert_string_equal(found, "untouched");
}

static void test_a_system_directory(void **state) {
  put_library(*state, "usr/lib/libgpu.so.1", own_class);
  check_found(*state, "libgpu.so.1", "usr/lib/libgpu.so.1");
  check_absent(*state, "libgpu.so.2");
  check_absent(*state, "libgpu.so");
}

static void test_a_directory_from_an_included_file(void **state) {
  put_library(*state, "opt/vendor/lib/libgpu.so.1", own_class);
  check_absent(*state, "libgpu.so.1");
  put_text(*state, "etc/ld.so.conf", "# comment\n\ninclude /etc/ld.so.conf.d/*.conf\n");
  check_absent(*state, "libgpu.so.1");
  put_text(*state, "etc/ld.so.conf.d/vendor.conf", "  /opt/nothing\t\n /opt/vendor/lib  # the driver");
  check_found(*state, "libgpu.so.1", "opt/vendor/lib/libgpu.so.1");
  put_text(*state, "etc/ld.so.conf", "include\tld.so.conf.d/*.conf\r\n");
  check_found(*state, "libgpu.so.1", "opt/vendor/lib/libgpu.so.1");
  put_text(*state, "etc/ld.so.conf", "/opt/vendor/lib");
  check_found(*state, "libgpu.so.1", "opt/vendor/lib/libgpu.so.1");
}

static void test_hostile_configuration(void **state) {
  put_library(*state, "opt/vendor/lib/libgpu.so.1", own_class);
  put_text(*state, "etc/ld.so.conf",
           "include /etc/ld.so.conf\ninclude /etc/ld.so.conf\ninclude\nincludes\nopt/vendor/lib\n#");
  check_absent(*state, "libgpu.so.1");
  char *large = malloc(100000);
  assert_non_null(large);
  memset(large, '/', 99999);
  large[99999] = '\0';
  put_text(*state, "etc/ld.so.conf", large);
  check_absent(*state, "libgpu.so.1");
  free(large);
  unsigned char binary[256];
  for (size_t i = 0; i < sizeof binary; i++) binary[i] = (unsigned char)i;
  temp_folder_write(*state, "etc/ld.so.conf", binary, sizeof binary);
  check_absent(*state, "libgpu.so.1");
}

static void test_what_is_no_library(void **state) {
  put_text(*state, "usr/lib/libscript.so", "/* GNU ld script */ INPUT(libscript.so.1)");
  put_text(*state, "usr/lib/libempty.so", "");
  put_library(*state, "usr/lib/libother.so", other_class);
  temp_folder_dir(*state, "usr/lib/libdir.so");
  check_absent(*state, "libscript.so");
  check_absent(*state, "libempty.so");
  check_absent(*state, "libother.so");
  check_absent(*state, "libdir.so");
}

static void test_a_pipe_does_not_block(void **state) {
  temp_folder *root = *state;
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/usr/lib/libpipe.so", root->path);
  assert_int_equal(mkfifo(path, 0600), 0);
  check_absent(root, "libpipe.so");
}

static void test_the_library_path_goes_first(void **state) {
  temp_folder *root = *state;
  char list[PATH_MAX + 64];
  put_library(root, "usr/lib/libgpu.so.1", own_class);
  put_library(root, "opt/vendor/lib/libgpu.so.1", own_class);
  snprintf(list, sizeof list, ":/nowhere:%s/opt/vendor/lib:", root->path);
  setenv("LD_LIBRARY_PATH", list, 1);
  check_found(root, "libgpu.so.1", "opt/vendor/lib/libgpu.so.1");
}

static void test_the_current_directory_is_never_searched(void **state) {
  temp_folder *root = *state;
  char *before = getcwd(NULL, 0);
  put_library(root, "libhere.so", own_class);
  assert_int_equal(chdir(root->path), 0);
  static const char *const lists[] = {"", ":", ".", "./", ":.:", "../"};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    setenv("LD_LIBRARY_PATH", lists[i], 1);
    check_absent(root, "libhere.so");
  }
  check_absent(root, "./libhere.so");
  assert_int_equal(chdir(before), 0);
  free(before);
}

static void test_an_absolute_path_is_looked_at_as_it_is(void **state) {
  temp_folder *root = *state;
  char path[PATH_MAX], found[PATH_MAX];
  put_library(root, "opt/vendor/lib/libgpu.so.1", own_class);
  snprintf(path, sizeof path, "%s/opt/vendor/lib/libgpu.so.1", root->path);
  assert_true(gm__library_find("", path, found, sizeof found));
  assert_string_equal(found, path);
  assert_true(gm__library_find("", path, found, strlen(path) + 1));
  assert_false(gm__library_find("", path, found, strlen(path)));
  strcat(path, "x");
  assert_false(gm__library_find("", path, found, sizeof found));
}

static void test_names_that_are_too_long(void **state) {
  static char name[PATH_MAX * 2];
  memset(name, 'n', sizeof name - 1);
  check_absent(*state, name);
  name[0] = '/';
  check_absent(*state, name);
  setenv("LD_LIBRARY_PATH", name, 1);
  check_absent(*state, "libgpu.so.1");
}

static void test_the_real_system_has_its_c_library(void **state) {
  (void)state;
  char found[PATH_MAX];
  assert_true(gm__library_find("", "libc.so.6", found, sizeof found));
  assert_int_equal(access(found, R_OK), 0);
}

static void test_which_names_may_be_loaded(void **state) {
  (void)state;
  assert_true(gm__library_name_ok("libcuda.so.1"));
  assert_true(gm__library_name_ok("/opt/lib/libcuda.so.1"));
  static const char *const bad[] = {"", ".", "..", "./libcuda.so", "../libcuda.so", "lib/libcuda.so", "libcuda.so/"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(gm__library_name_ok(bad[i]));
}

#define test_in_root(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)

int main(void) {
  const struct CMUnitTest tests[] = {
      test_in_root(test_a_system_directory),
      test_in_root(test_a_directory_from_an_included_file),
      test_in_root(test_hostile_configuration),
      test_in_root(test_what_is_no_library),
      test_in_root(test_a_pipe_does_not_block),
      test_in_root(test_the_library_path_goes_first),
      test_in_root(test_the_current_directory_is_never_searched),
      test_in_root(test_an_absolute_path_is_looked_at_as_it_is),
      test_in_root(test_names_that_are_too_long),
      cmocka_unit_test(test_the_real_system_has_its_c_library),
      cmocka_unit_test(test_which_names_may_be_loaded),
  };
  unsetenv("LD_LIBRARY_PATH");
  return cmocka_run_group_tests(tests, NULL, NULL);
}
