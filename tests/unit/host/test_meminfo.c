/* The kernel's meminfo and pressure files, well-formed and not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/host/host_readers.h"
#include "gm/memory_info.h"
#include "support/tree.h"

#define KIB(n) (UINT64_C(n) * 1024)

static gm__meminfo meminfo_of(temp_folder *root, const char *text) {
  gm__meminfo info;
  tree_put(root, "/m", text);
  assert_int_equal(gm__meminfo_read(root->path, "/m", &info), GM__FILE_OK);
  return info;
}

static void test_every_key_is_found_in_any_order(void **state) {
  gm__meminfo info = meminfo_of(*state,
                                "Hugepagesize: 2048 kB\nHugePages_Free: 3\nSReclaimable: 9 kB\nInactive(file): 8 kB\n"
                                "Active(file): 7 kB\nShmem:\t6 kB\nCached: 5 kB\nBuffers: 4 kB\nMemAvailable: 3 kB \n"
                                "MemFree: 2 kB\nMemTotal:        1 kB");
  assert_true(info.total == KIB(1) && info.free_memory == KIB(2) && info.available == KIB(3));
  assert_true(info.buffers == KIB(4) && info.cached == KIB(5) && info.shmem == KIB(6));
  assert_true(info.active_file == KIB(7) && info.inactive_file == KIB(8) && info.reclaimable_slab == KIB(9));
  assert_true(info.hugepages_free == 3 && info.hugepage_bytes == KIB(2048));
}

static void test_node_files_have_the_node_in_front(void **state) {
  gm__meminfo info = meminfo_of(*state, "Node 12 MemTotal:  5 kB\nNode x MemFree: 4 kB\nNode 1MemFree: 4 kB\n");
  assert_true(info.total == KIB(5) && info.free_memory == GM_UNKNOWN_BYTES);
}

static void test_a_line_that_does_not_parse_is_as_if_absent(void **state) {
  static const char *const lines[] = {"MemTotal: -1 kB",
                                      "MemTotal: 1",
                                      "MemTotal: 1 MB",
                                      "MemTotal: kB",
                                      "MemTotal 1 kB",
                                      "MemTotal: 1 kBx",
                                      "MemTotal: 18446744073709551615 kB",
                                      "MemTotal: 18446744073709551616 kB",
                                      "MemTotal: 1 2 kB",
                                      " MemTotal: 1 kB",
                                      "MemTotals: 1 kB",
                                      "MemTota: 1 kB",
                                      "MemTotal: 0x10 kB",
                                      ":",
                                      "MemTotal:",
                                      "\377\376: 1 kB",
                                      ""};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    assert_true(meminfo_of(*state, lines[i]).total == GM_UNKNOWN_BYTES);
  }
}

static void test_the_first_line_of_a_name_that_parses_counts(void **state) {
  assert_true(meminfo_of(*state, "MemTotal: x\nMemTotal: 1 kB\nMemTotal: 2 kB\n").total == KIB(1));
}

static void test_hugepages_are_a_count_without_unit(void **state) {
  assert_true(meminfo_of(*state, "HugePages_Free: 5 kB\n").hugepages_free == GM_UNKNOWN_BYTES);
}

static void test_a_missing_file_leaves_all_unknown(void **state) {
  gm__meminfo info;
  temp_folder *root = *state;
  assert_int_equal(gm__meminfo_read(root->path, "/none", &info), GM__FILE_ABSENT);
  assert_true(info.total == GM_UNKNOWN_BYTES && info.hugepage_bytes == GM_UNKNOWN_BYTES);
  assert_true(gm__meminfo_estimate(&info) == GM_UNKNOWN_BYTES);
}

static void test_the_estimate_of_old_kernels(void **state) {
  gm__meminfo info = meminfo_of(*state, "MemFree: 100 kB\n");
  assert_true(gm__meminfo_estimate(&info) == KIB(100));
  info = meminfo_of(*state, "MemFree: 100 kB\nActive(file): 10 kB\nInactive(file): 30 kB\nSReclaimable: 8 kB\n");
  assert_true(gm__meminfo_estimate(&info) == KIB(100) + KIB(20) + KIB(4));
  info = meminfo_of(*state, "MemFree: 100 kB\nActive(file): 10 kB\nCached: 50 kB\nBuffers: 10 kB\nShmem: 20 kB\n");
  assert_true(gm__meminfo_estimate(&info) == KIB(100) + KIB(20));
  info = meminfo_of(*state, "MemFree: 100 kB\nCached: 5 kB\nShmem: 20 kB\n");
  assert_true(gm__meminfo_estimate(&info) == KIB(100));
}

static void test_the_estimate_does_not_wrap(void **state) {
  (void)state;
  gm__meminfo info = {.free_memory = UINT64_MAX - 2,
                      .active_file = UINT64_MAX - 2,
                      .inactive_file = UINT64_MAX - 2,
                      .reclaimable_slab = UINT64_MAX - 2};
  assert_true(gm__meminfo_estimate(&info) == UINT64_MAX);
}

static gm_host_stall some_of(temp_folder *root, const char *text) {
  gm_host_stall some, full;
  tree_put(root, "/proc/pressure/memory", text);
  gm__psi_read(root->path, &some, &full);
  assert_false(full.valid);
  return some;
}

static void test_pressure_lines(void **state) {
  gm_host_stall stall = some_of(*state, "some avg10=100.00 avg60=0.57 avg300=0.12 total=18446744073709551615\n");
  assert_true(stall.valid && stall.avg10_centi == 10000 && stall.total_us == UINT64_MAX);
  stall = some_of(*state, "some avg10=0.07 total=0");
  assert_true(stall.valid && stall.avg10_centi == 7 && stall.total_us == 0);
}

static void test_pressure_that_is_not_understood_is_no_figure(void **state) {
  static const char *const lines[] = {"",
                                      "some",
                                      "some avg10=1.25",
                                      "some total=5",
                                      "some avg10=1.2 total=5",
                                      "some avg10=1.250 total=5",
                                      "some avg10=-1.25 total=5",
                                      "some avg10=101.00 total=5",
                                      "some avg10=99999999999999999999.00 total=5",
                                      "some avg10=1.25 total=18446744073709551616",
                                      "some avg10=1.25 total=5x",
                                      "some avg10=1.25x total=5",
                                      "somewhat avg10=1.25 total=5"};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    gm_host_stall stall = some_of(*state, lines[i]);
    assert_true(!stall.valid && stall.avg10_centi == 0 && stall.total_us == 0);
  }
}

static void test_no_pressure_file_is_no_figure(void **state) {
  temp_folder *root = *state;
  gm_host_stall some, full;
  gm__psi_read(root->path, &some, &full);
  assert_false(some.valid || full.valid);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_set_up, tree_tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_every_key_is_found_in_any_order),
      TEST(test_node_files_have_the_node_in_front),
      TEST(test_a_line_that_does_not_parse_is_as_if_absent),
      TEST(test_the_first_line_of_a_name_that_parses_counts),
      TEST(test_hugepages_are_a_count_without_unit),
      TEST(test_a_missing_file_leaves_all_unknown),
      TEST(test_the_estimate_of_old_kernels),
      TEST(test_the_estimate_does_not_wrap),
      TEST(test_pressure_lines),
      TEST(test_pressure_that_is_not_understood_is_no_figure),
      TEST(test_no_pressure_file_is_no_figure),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
