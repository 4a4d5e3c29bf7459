/* Where the files of the own memory groups are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/host/host_readers.h"
#include "support/tree.h"

typedef struct found {
  gm__cgroup_place v1;
  gm__cgroup_place v2;
} found;

static found find(temp_folder *root, const char *self, const char *mounts) {
  gm__host_scratch *scratch = gm__host_scratch_take(NULL);
  tree_put(root, "/proc/self/cgroup", self);
  if (mounts) tree_put(root, "/proc/self/mountinfo", mounts);
  assert_non_null(scratch);
  assert_true(gm__cgroup_find(root->path, scratch));
  const found places = {scratch->v1, scratch->v2};
  gm__host_scratch_give(NULL, scratch);
  return places;
}

static void assert_place(const gm__cgroup_place *place, const char *mount, const char *below) {
  assert_true(place->found);
  assert_string_equal(place->mount, mount);
  assert_string_equal(place->below, below);
}

static void test_both_trees_of_a_hybrid_are_found(void **state) {
  found places = find(*state, "4:cpu,memory:/a/b\n3:cpuset:/x\n0::/c\n",
                      "36 29 0:33 / /m1 rw shared:15 - cgroup cgroup rw,cpu,memory\n"
                      "37 29 0:34 / /m0 rw - cgroup cgroup rw,cpuset\n42 29 0:39 / /m2 rw - cgroup2 cgroup2 rw\n");
  assert_place(&places.v1, "/m1", "/a/b");
  assert_place(&places.v2, "/m2", "/c");
}

static void test_without_mountinfo_the_usual_places_are_taken(void **state) {
  found places = find(*state, "4:memory:/a\n0::/c\n", NULL);
  assert_place(&places.v1, "/sys/fs/cgroup/memory", "/a");
  assert_place(&places.v2, "/sys/fs/cgroup/unified", "/c");
  places = find(*state, "0::/\n", NULL);
  assert_false(places.v1.found);
  assert_place(&places.v2, "/sys/fs/cgroup", "");
}

static void test_a_tree_that_is_not_mounted_is_not_found(void **state) {
  found places = find(*state, "4:memory:/a\n0::/c\n", "30 1 0:1 / / rw - ext4 /dev/x rw\n");
  assert_false(places.v1.found || places.v2.found);
}

static void test_the_root_of_the_mount_is_stripped_at_a_border_only(void **state) {
  found places = find(*state, "0::/docker/9f/job\n", "8 8 0:26 /docker/9f /cg rw - cgroup2 cgroup rw\n");
  assert_place(&places.v2, "/cg", "/job");
  places = find(*state, "0::/docker/9f\n", "8 8 0:26 /docker/9f /cg rw - cgroup2 cgroup rw\n");
  assert_place(&places.v2, "/cg", "");
  places = find(*state, "0::/docker/9f00/job\n", "8 8 0:26 /docker/9f /cg rw - cgroup2 cgroup rw\n");
  assert_place(&places.v2, "/cg", "");
}

static void test_a_path_that_leaves_the_namespace_is_not_followed(void **state) {
  static const char mounts[] = "8 8 0:26 / /cg rw - cgroup2 cgroup rw\n";
  static const char *const paths[] = {"0::/../x\n", "0::/..\n", "0::/a/../../x\n", "0::/a/..\n"};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    found places = find(*state, paths[i], mounts);
    assert_place(&places.v2, "/cg", "");
  }
  found places = find(*state, "0::/..a/b..\n", mounts);
  assert_place(&places.v2, "/cg", "/..a/b..");
}

static void test_octal_escapes_are_decoded_in_mounts_only(void **state) {
  found places = find(*state, "0::/a\\040b\\x2d\n", "8 8 0:26 / /my\\040cg\\134\\9\\477 rw - cgroup2 cgroup rw\n");
  assert_place(&places.v2, "/my cg\\\\9\\477", "/a\\040b\\x2d");
}

static void test_the_mount_that_shows_most_is_chosen(void **state) {
  found places = find(*state, "0::/a/b/c\n",
                      "1 1 0:1 /x /foreign rw - cgroup2 c rw\n2 1 0:1 /a/b /near rw - cgroup2 c rw\n"
                      "3 1 0:1 / /whole rw - cgroup2 c rw\n4 1 0:1 /a /half rw - cgroup2 c rw\n");
  assert_place(&places.v2, "/whole", "/a/b/c");
  places = find(*state, "0::/a\n", "1 1 0:1 /a /cg rw - cgroup2 c rw\n2 1 0:1 / /cg rw - cgroup2 c rw\n");
  assert_place(&places.v2, "/cg", "/a");
}

static void test_a_path_may_hold_colons(void **state) {
  found places = find(*state, "0::/a:b:c\n", NULL);
  assert_place(&places.v2, "/sys/fs/cgroup", "/a:b:c");
}

static void test_an_empty_mount_source_does_not_hide_the_options(void **state) {
  found places = find(*state, "4:memory:/a\n", "36 29 0:33 / /m1 rw - cgroup  rw,memory\n");
  assert_place(&places.v1, "/m1", "/a");
}

static void test_lines_that_are_not_understood_are_skipped(void **state) {
  found places = find(*state, "\n:\n::\n0:\n0::relative\n0\n:memory:x\n4:memoryx:/a\n4:xmemory:/a\n",
                      "\n-\n1 2 3 / /m - cgroup2\n1 2 3 / /m rw\n1 2 3 / /m rw -\n1 2 3 / /m rw - cgroup2 c rw\n");
  assert_false(places.v1.found || places.v2.found);
}

static void test_a_mount_line_with_very_many_fields_is_skipped(void **state) {
  char line[1024] = "1 2 3 / /m rw";
  for (int i = 0; i < 100; i++) strcat(line, " a:1");
  strcat(line, " - cgroup2 c rw\n");
  assert_false(find(*state, "0::/\n", line).v2.found);
}

static void test_an_unreadable_list_is_told(void **state) {
  temp_folder *root = *state;
  gm__host_scratch *scratch = gm__host_scratch_take(NULL);
  assert_true(gm__cgroup_find(root->path, scratch));
  temp_folder_dir(root, "proc/self/cgroup");
  assert_false(gm__cgroup_find(root->path, scratch));
  assert_false(scratch->v1.found || scratch->v2.found);
  gm__host_scratch_give(NULL, scratch);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_set_up, tree_tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_both_trees_of_a_hybrid_are_found),
      TEST(test_without_mountinfo_the_usual_places_are_taken),
      TEST(test_a_tree_that_is_not_mounted_is_not_found),
      TEST(test_the_root_of_the_mount_is_stripped_at_a_border_only),
      TEST(test_a_path_that_leaves_the_namespace_is_not_followed),
      TEST(test_octal_escapes_are_decoded_in_mounts_only),
      TEST(test_the_mount_that_shows_most_is_chosen),
      TEST(test_a_path_may_hold_colons),
      TEST(test_an_empty_mount_source_does_not_hide_the_options),
      TEST(test_lines_that_are_not_understood_are_skipped),
      TEST(test_a_mount_line_with_very_many_fields_is_skipped),
      TEST(test_an_unreadable_list_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
