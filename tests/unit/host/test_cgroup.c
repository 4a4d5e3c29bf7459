/* The bytes that each level of the memory groups allows: rules H7 to H9 where the shared cases do not go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gm/memory_info.h"
#include "support/tree.h"

#define GIB(n) (UINT64_C(n) << 30)

/* A machine of 64 GiB with 48 GiB available. */
static void put_machine(temp_folder *root, const char *self) {
  tree_put(root, "/proc/meminfo", "MemTotal: 67108864 kB\nMemFree: 1 kB\nMemAvailable: 50331648 kB\n");
  tree_put(root, "/proc/self/cgroup", self);
}

static gm_host_info read_host(temp_folder *root) {
  gm_host_info info = {.struct_size = sizeof info};
  assert_int_equal(gm_host_info_read(root->path, &info, NULL), GM_OK);
  return info;
}

static void put_v1(temp_folder *root, const char *limit, const char *usage, const char *stat) {
  tree_put(root, "/sys/fs/cgroup/memory/memory.limit_in_bytes", limit);
  tree_put(root, "/sys/fs/cgroup/memory/memory.usage_in_bytes", usage);
  tree_put(root, "/sys/fs/cgroup/memory/memory.stat", stat);
}

static void test_v1_counts_the_inactive_files_of_the_whole_tree(void **state) {
  put_machine(*state, "4:memory:/\n");
  put_v1(*state, "4294967296\n", "3221225472\n", "inactive_file 1\ntotal_inactive_file 1073741824\n");
  gm_host_info info = read_host(*state);
  assert_true(info.total_bytes == GIB(4) && info.free_bytes == GIB(2) && info.free_state == GM_FIGURE_KNOWN);
  assert_true(info.cgroup_limited && info.mem_total_bytes == GIB(64) && info.mem_available_bytes == GIB(48));
  put_v1(*state, "4294967296\n", "3221225472\n", "inactive_file 1073741824\n");
  assert_true(read_host(*state).free_bytes == GIB(2));
}

static void test_v1_memory_plus_swap_bounds_too(void **state) {
  put_machine(*state, "4:memory:/\n");
  put_v1(*state, "8589934592\n", "1073741824\n", "total_inactive_file 0\n");
  tree_put(*state, "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes", "8589934592\n");
  tree_put(*state, "/sys/fs/cgroup/memory/memory.memsw.usage_in_bytes", "6442450944\n");
  gm_host_info info = read_host(*state);
  assert_true(info.total_bytes == GIB(8) && info.free_bytes == GIB(2));
  assert_string_equal(info.limit_source, "cgroup1:/sys/fs/cgroup/memory");
}

static void test_v1_no_limit_of_any_page_size_is_none(void **state) {
  put_machine(*state, "4:memory:/\n");
  static const char *const none[] = {"9223372036854771712\n", "9223372036854710272\n", "18446744073709551615\n",
                                     "max\n"};
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    put_v1(*state, none[i], "1\n", "total_inactive_file 0\n");
    gm_host_info info = read_host(*state);
    assert_true(info.total_bytes == GIB(64) && info.free_bytes == GIB(48) && info.free_state == GM_FIGURE_KNOWN);
    assert_false(info.cgroup_limited);
  }
}

/* Without MemTotal only limits are left; a "none" must not be taken for one. */
static void test_no_limit_is_not_the_size_of_the_machine(void **state) {
  tree_put(*state, "/proc/self/cgroup", "4:memory:/\n");
  put_v1(*state, "9223372036854771712\n", "1\n", "hierarchical_memory_limit 9223372036854771712\n");
  gm_host_info info = read_host(*state);
  assert_true(info.total_bytes == GM_UNKNOWN_BYTES && info.free_state == GM_FIGURE_UNKNOWN);
  put_v1(*state, "4294967296\n", "1073741824\n", "total_inactive_file 0\n");
  info = read_host(*state);
  assert_true(info.total_bytes == GIB(4) && info.free_bytes == GIB(3) && info.free_state == GM_FIGURE_ESTIMATED);
}

/* The own group's hierarchical limit counts, also when a level below it is out of sight. */
static void test_v1_hierarchical_limit_of_a_hidden_ancestor(void **state) {
  put_machine(*state, "4:memory:/a\n");
  put_v1(*state, "9223372036854771712\n", "1073741824\n",
         "total_inactive_file 0\nhierarchical_memory_limit 4294967296\n");
  gm_host_info info = read_host(*state);
  assert_true(info.total_bytes == GIB(4) && info.free_bytes == GIB(3) && info.free_state == GM_FIGURE_ESTIMATED);
  assert_string_equal(info.total_source, "cgroup1:hierarchical");
  tree_put(*state, "/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4294967296\n");
  tree_put(*state, "/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "0\n");
  tree_put(*state, "/sys/fs/cgroup/memory/a/memory.stat",
           "total_inactive_file 0\nhierarchical_memory_limit 4294967296\n");
  info = read_host(*state);
  assert_true(info.free_bytes == GIB(4) && info.free_state == GM_FIGURE_KNOWN);
  assert_string_equal(info.limit_source, "cgroup1:/sys/fs/cgroup/memory/a");
}

static void put_v2(temp_folder *root, const char *name, const char *text) {
  char path[256];
  snprintf(path, sizeof path, "/sys/fs/cgroup/%s", name);
  tree_put(root, path, text);
}

static void test_a_limit_of_zero_is_a_limit(void **state) {
  put_machine(*state, "0::/\n");
  put_v2(*state, "memory.max", "0\n");
  put_v2(*state, "memory.current", "0\n");
  put_v2(*state, "memory.stat", "inactive_file 0\n");
  gm_host_info info = read_host(*state);
  assert_true(info.total_bytes == 0 && info.free_bytes == 0 && info.free_state == GM_FIGURE_KNOWN);
}

static void test_a_limit_that_is_not_understood_is_none_but_estimated(void **state) {
  put_machine(*state, "0::/\n");
  static const char *const bad[] = {"",        "\n",   "-1\n",    "+5\n",  "12k\n", "1 2\n", "18446744073709551616\n",
                                    "maximum", "0x10", "max max", "\377\n"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    put_v2(*state, "memory.max", bad[i]);
    gm_host_info info = read_host(*state);
    assert_true(info.total_bytes == GIB(64) && info.free_bytes == GIB(48));
    assert_int_equal(info.free_state, GM_FIGURE_ESTIMATED);
    assert_string_equal(info.limit_source, "meminfo");
  }
  static const char nul[] = "1\0002\n";
  tree_put_bytes(*state, "/sys/fs/cgroup/memory.max", nul, sizeof nul - 1);
  gm_host_info info = read_host(*state);
  assert_true(info.free_state == GM_FIGURE_ESTIMATED && info.free_bytes == GIB(48));
}

static void test_a_limit_file_of_a_megabyte_is_not_understood(void **state) {
  put_machine(*state, "0::/\n");
  size_t mega = (size_t)1 << 20;
  char *digits = malloc(mega);
  assert_non_null(digits);
  memset(digits, '1', mega);
  tree_put_bytes(*state, "/sys/fs/cgroup/memory.max", digits, mega);
  free(digits);
  gm_host_info info = read_host(*state);
  assert_true(info.free_state == GM_FIGURE_ESTIMATED && info.free_bytes == GIB(48));
}

static void test_white_space_around_a_limit_is_allowed(void **state) {
  put_machine(*state, "0::/\n");
  put_v2(*state, "memory.max", " \t4294967296 \n\n");
  put_v2(*state, "memory.high", "  max");
  put_v2(*state, "memory.current", "1073741824");
  put_v2(*state, "memory.stat", "inactive_file 0");
  gm_host_info info = read_host(*state);
  assert_true(info.free_bytes == GIB(3) && info.free_state == GM_FIGURE_KNOWN);
}

static void test_without_stat_nothing_is_reclaimable(void **state) {
  put_machine(*state, "0::/\n");
  put_v2(*state, "memory.max", "4294967296");
  put_v2(*state, "memory.current", "1073741824");
  gm_host_info info = read_host(*state);
  assert_true(info.free_bytes == GIB(3) && info.free_state == GM_FIGURE_ESTIMATED);
  put_v2(*state, "memory.stat", "anon 5\ninactive_file -5\n");
  info = read_host(*state);
  assert_true(info.free_bytes == GIB(3) && info.free_state == GM_FIGURE_ESTIMATED);
}

static void test_more_inactive_than_used_leaves_the_limit(void **state) {
  put_machine(*state, "0::/\n");
  put_v2(*state, "memory.max", "4294967296");
  put_v2(*state, "memory.current", "5");
  put_v2(*state, "memory.stat", "inactive_file 18446744073709551614\n");
  assert_true(read_host(*state).free_bytes == GIB(4));
}

static void test_equal_rooms_are_told_of_the_level_nearest_the_root(void **state) {
  put_machine(*state, "0::/a/b\n");
  static const char *const levels[] = {"a/", "a/b/"};
  for (size_t i = 0; i < 2; i++) {
    char name[64];
    snprintf(name, sizeof name, "%smemory.max", levels[i]);
    put_v2(*state, name, "4294967296");
    snprintf(name, sizeof name, "%smemory.current", levels[i]);
    put_v2(*state, name, "0");
    snprintf(name, sizeof name, "%smemory.stat", levels[i]);
    put_v2(*state, name, "inactive_file 0");
  }
  gm_host_info info = read_host(*state);
  assert_string_equal(info.limit_source, "cgroup2:/sys/fs/cgroup/a");
  assert_string_equal(info.total_source, "cgroup2:/sys/fs/cgroup/a");
}

/* Deeper than any kernel allows, and a source text longer than its field. */
static void test_a_very_deep_group_is_walked(void **state) {
  temp_folder *root = *state;
  char self[3000] = "0::", folder[2900] = "";
  for (int i = 0; i < 25; i++) strcat(folder, "/a-name-that-is-quite-long-for-a-group");
  strcat(strcat(self, folder), "\n");
  put_machine(root, self);
  char path[3000];
  snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.high", folder);
  tree_put(root, path, "1073741824");
  gm_host_info info = read_host(root);
  assert_true(info.free_bytes == GIB(1) && info.total_bytes == GIB(64));
  assert_int_equal(strlen(info.limit_source), GM_HOST_SOURCE_SIZE - 1);
}

static void test_an_unreadable_group_list_makes_an_estimate(void **state) {
  put_machine(*state, "0::/\n");
  assert_int_equal(read_host(*state).free_state, GM_FIGURE_KNOWN);
  char path[400];
  snprintf(path, sizeof path, "%s/proc/self/cgroup", ((temp_folder *)*state)->path);
  assert_int_equal(remove(path), 0);
  assert_int_equal(read_host(*state).free_state, GM_FIGURE_KNOWN);
  temp_folder_dir(*state, "proc/self/cgroup");
  gm_host_info info = read_host(*state);
  assert_true(info.free_state == GM_FIGURE_ESTIMATED && info.free_bytes == GIB(48));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_set_up, tree_tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_v1_counts_the_inactive_files_of_the_whole_tree),
      TEST(test_v1_memory_plus_swap_bounds_too),
      TEST(test_v1_no_limit_of_any_page_size_is_none),
      TEST(test_no_limit_is_not_the_size_of_the_machine),
      TEST(test_v1_hierarchical_limit_of_a_hidden_ancestor),
      TEST(test_a_limit_of_zero_is_a_limit),
      TEST(test_a_limit_that_is_not_understood_is_none_but_estimated),
      TEST(test_a_limit_file_of_a_megabyte_is_not_understood),
      TEST(test_white_space_around_a_limit_is_allowed),
      TEST(test_without_stat_nothing_is_reclaimable),
      TEST(test_more_inactive_than_used_leaves_the_limit),
      TEST(test_equal_rooms_are_told_of_the_level_nearest_the_root),
      TEST(test_a_very_deep_group_is_walked),
      TEST(test_an_unreadable_group_list_makes_an_estimate),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
