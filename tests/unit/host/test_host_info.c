/* The host's figures from files of a made machine, from garbage, and from the real one. */
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/host/host_info.h"
#include "gm/memory_info.h"
#include "support/tree.h"

#define KIB(n) (UINT64_C(n) * 1024)

static gm_host_info read_host(temp_folder *root) {
  gm_host_info info = {.struct_size = sizeof info};
  assert_int_equal(gm_host_info_read(root ? root->path : NULL, &info, NULL), GM_OK);
  return info;
}

static void assert_sane(const gm_host_info *info) {
  assert_true((info->free_bytes == GM_UNKNOWN_BYTES) == (info->free_state == GM_FIGURE_UNKNOWN));
  if (info->free_bytes != GM_UNKNOWN_BYTES) assert_true(info->free_bytes <= info->total_bytes);
  assert_true(memchr(info->limit_source, 0, sizeof info->limit_source) && info->limit_source[0]);
  assert_true(memchr(info->total_source, 0, sizeof info->total_source) && info->total_source[0]);
  assert_true(memchr(info->cpu_name, 0, sizeof info->cpu_name));
}

static void test_bad_arguments_are_named(void **state) {
  (void)state;
  gm_error err;
  gm_host_info info = {.struct_size = 8, .cores = 99};
  assert_int_equal(gm_host_info_read(NULL, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "out"));
  assert_int_equal(gm_host_info_read(NULL, &info, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "struct_size"));
  assert_int_equal(info.cores, 99);
  static char root[8192];
  memset(root, 'r', sizeof root - 1);
  info.struct_size = sizeof info;
  assert_int_equal(gm_host_info_read(root, &info, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "root"));
  assert_int_equal(info.cores, 99);
  assert_int_equal(gm_host_info_read(NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
}

static void test_an_empty_machine_is_unknown(void **state) {
  gm_host_info info = read_host(*state);
  assert_sane(&info);
  assert_true(info.total_bytes == GM_UNKNOWN_BYTES && info.free_bytes == GM_UNKNOWN_BYTES);
  assert_true(info.hugetlb_free_bytes == GM_UNKNOWN_BYTES && info.huge_page_bytes == GM_UNKNOWN_BYTES);
  assert_true(info.cores == 0 && info.cpu_name[0] == 0 && info.node_count == 0);
  assert_string_equal(info.limit_source, "none");
  assert_string_equal(info.total_source, "none");
}

static void test_total_without_free_is_possible(void **state) {
  tree_put(*state, "/proc/meminfo", "MemTotal: 100 kB\n");
  gm_host_info info = read_host(*state);
  assert_sane(&info);
  assert_true(info.total_bytes == KIB(100) && info.free_bytes == GM_UNKNOWN_BYTES);
}

static void test_available_above_total_is_cut_and_estimated(void **state) {
  tree_put(*state, "/proc/meminfo", "MemTotal: 100 kB\nMemAvailable: 200 kB\n");
  gm_host_info info = read_host(*state);
  assert_true(info.free_bytes == KIB(100) && info.free_state == GM_FIGURE_ESTIMATED);
}

static void test_huge_pages_that_overflow_stop_at_the_top(void **state) {
  tree_put(*state, "/proc/meminfo", "HugePages_Free: 18446744073709551614\nHugepagesize: 2048 kB\n");
  assert_true(read_host(*state).hugetlb_free_bytes == UINT64_MAX);
}

static void put_node(temp_folder *root, unsigned node, const char *text) {
  char path[96];
  snprintf(path, sizeof path, "/sys/devices/system/node/node%u/meminfo", node);
  tree_put(root, path, text);
}

static void test_only_allowed_nodes_count(void **state) {
  tree_put(*state, "/proc/meminfo", "MemTotal: 200 kB\nMemAvailable: 150 kB\n");
  put_node(*state, 0, "Node 0 MemTotal: 100 kB\nNode 0 MemFree: 60 kB\nNode 0 Active(file): 5 kB\n");
  put_node(*state, 1, "Node 1 MemTotal: 100 kB\nNode 1 MemFree: 70 kB\n");
  gm_host_info info = read_host(*state);
  assert_true(info.free_bytes == KIB(150) && info.free_state == GM_FIGURE_KNOWN && info.node_count == 2);
  tree_put(*state, "/proc/self/status", "Name:\tx\nMems_allowed_list:\t0\n");
  info = read_host(*state);
  assert_true(info.total_bytes == KIB(100) && info.free_bytes == KIB(65) && info.free_state == GM_FIGURE_ESTIMATED);
  assert_string_equal(info.limit_source, "numa");
  assert_false(info.cgroup_limited);
  assert_true(info.nodes[0].allowed && !info.nodes[1].allowed && info.nodes[1].free_bytes == KIB(70));
}

/* A hypervisor that hands memory out as it is touched: the nodes hold less than the machine will have. */
static void test_nodes_that_are_all_allowed_bound_nothing(void **state) {
  tree_put(*state, "/proc/meminfo", "MemTotal: 200 kB\nMemAvailable: 150 kB\n");
  put_node(*state, 0, "Node 0 MemTotal: 50 kB\nNode 0 MemFree: 30 kB\n");
  static const char *const lists[] = {"", "Mems_allowed_list:\t0\n", "Mems_allowed_list:\t0-7\n"};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    tree_put(*state, "/proc/self/status", lists[i]);
    gm_host_info info = read_host(*state);
    assert_true(info.total_bytes == KIB(200) && info.free_bytes == KIB(150) && info.free_state == GM_FIGURE_KNOWN);
    assert_string_equal(info.total_source, "meminfo");
  }
}

/* `has_memory` decides which node counts as left out; without it the nodes' own files do. */
static void test_a_node_without_memory_is_not_missed(void **state) {
  tree_put(*state, "/proc/meminfo", "MemTotal: 200 kB\nMemAvailable: 150 kB\n");
  tree_put(*state, "/proc/self/status", "Mems_allowed_list:\t0\n");
  put_node(*state, 0, "Node 0 MemTotal: 100 kB\nNode 0 MemFree: 60 kB\n");
  put_node(*state, 1, "Node 1 MemTotal: 0 kB\nNode 1 MemFree: 0 kB\n");
  assert_true(read_host(*state).total_bytes == KIB(200));
  tree_put(*state, "/sys/devices/system/node/has_memory", "0\n");
  assert_true(read_host(*state).total_bytes == KIB(200));
  tree_put(*state, "/sys/devices/system/node/has_memory", "0-1\n");
  assert_true(read_host(*state).total_bytes == KIB(100));
  tree_put(*state, "/sys/devices/system/node/has_memory", "0,9\n");
  assert_true(read_host(*state).total_bytes == KIB(100));
}

/* The files that gm opened, counted between the program and libc. */
static uint32_t opened;

int __real_openat(int folder, const char *path, int flags, ...);
int __real_openat64(int folder, const char *path, int flags, ...);
int __wrap_openat(int folder, const char *path, int flags, ...);
int __wrap_openat64(int folder, const char *path, int flags, ...);

int __wrap_openat(int folder, const char *path, int flags, ...) {
  opened++;
  return __real_openat(folder, path, flags, 0);
}

int __wrap_openat64(int folder, const char *path, int flags, ...) {
  opened++;
  return __real_openat64(folder, path, flags, 0);
}

static uint32_t opens_of_memory_read(temp_folder *root, gm_host_info *out) {
  opened = 0;
  assert_true(gm__host_memory_read(NULL, root->path, out));
  return opened;
}

/* A reading for a pool or a device wants no list of nodes: nodes that bound nothing cost it no file. */
static void test_nodes_that_bound_nothing_are_not_opened(void **state) {
  gm_host_info info;
  tree_put(*state, "/proc/meminfo", "MemTotal: 200 kB\nMemAvailable: 150 kB\n");
  tree_put(*state, "/proc/self/status", "Mems_allowed_list:\t0-1\n");
  tree_put(*state, "/sys/devices/system/node/has_memory", "0-1\n");
  const uint32_t without = opens_of_memory_read(*state, &info);
  put_node(*state, 0, "Node 0 MemTotal: 100 kB\nNode 0 MemFree: 60 kB\n");
  put_node(*state, 1, "Node 1 MemTotal: 100 kB\nNode 1 MemFree: 60 kB\n");
  assert_true(without > 0);
  assert_int_equal(opens_of_memory_read(*state, &info), without);
  assert_true(info.total_bytes == KIB(200) && info.free_bytes == KIB(150) && info.free_state == GM_FIGURE_KNOWN);
  assert_int_equal(read_host(*state).node_count, 2);
  tree_put(*state, "/proc/self/status", "Mems_allowed_list:\t0\n");
  assert_true(opens_of_memory_read(*state, &info) >= without + 2);
  assert_true(info.total_bytes == KIB(100) && info.free_bytes == KIB(60) && info.free_state == GM_FIGURE_ESTIMATED);
}

static void test_a_node_without_figures_does_not_shrink_the_machine(void **state) {
  tree_put(*state, "/proc/meminfo", "MemTotal: 200 kB\nMemAvailable: 150 kB\n");
  tree_put(*state, "/proc/self/status", "Mems_allowed_list:\t0-1\n");
  put_node(*state, 0, "Node 0 MemTotal: 100 kB\nNode 0 MemFree: 60 kB\n");
  put_node(*state, 1, "garbage\n");
  put_node(*state, 2, "Node 2 MemTotal: 100 kB\nNode 2 MemFree: 60 kB\n");
  gm_host_info info = read_host(*state);
  assert_true(info.total_bytes == KIB(200) && info.free_bytes == KIB(150) && info.free_state == GM_FIGURE_ESTIMATED);
}

/* A name that leads to itself: it is there, and cannot be read. */
static void put_loop(temp_folder *root, const char *path) {
  const char *full = temp_folder_join(root, path);
  assert_int_equal(symlink(full, full), 0);
}

/* A file that could not be read might be a bound: no figure is called known then. */
static void test_what_cannot_be_read_may_be_a_bound(void **state) {
  tree_put(*state, "/proc/meminfo", "MemTotal: 200 kB\nMemAvailable: 150 kB\n");
  tree_put(*state, "/sys/devices/system/other", "");
  assert_int_equal(read_host(*state).free_state, GM_FIGURE_KNOWN);
  put_loop(*state, "sys/devices/system/node");
  gm_host_info info = read_host(*state);
  assert_true(info.free_bytes == KIB(150) && info.free_state == GM_FIGURE_ESTIMATED);
  assert_int_equal(unlink(temp_folder_join(*state, "sys/devices/system/node")), 0);
  assert_int_equal(read_host(*state).free_state, GM_FIGURE_KNOWN);
  temp_folder_dir(*state, "proc/self");
  put_loop(*state, "proc/self/status");
  info = read_host(*state);
  assert_true(info.free_bytes == KIB(150) && info.free_state == GM_FIGURE_ESTIMATED);
}

/* This machine's figures: with few descriptors left nothing is better known than with many, nor more. */
static void test_without_descriptors_nothing_is_known_better(void **state) {
  (void)state;
  gm_host_info all = {.struct_size = sizeof all}, few = all;
  struct rlimit limit, low;
  assert_int_equal(gm_host_info_read(NULL, &all, NULL), GM_OK);
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
  for (int spare = 0; spare < 3; spare++) {
    const int next = dup(STDERR_FILENO);
    assert_true(next >= 0);
    close(next);
    low = (struct rlimit){(rlim_t)(next + spare), limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    const gm_status status = gm_host_info_read(NULL, &few, NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(status, GM_OK);
    assert_true(few.free_state <= all.free_state);
    if (few.free_state == GM_FIGURE_KNOWN) assert_int_equal(few.total_bytes, all.total_bytes);
  }
}

static void test_more_nodes_than_the_list_holds(void **state) {
  for (unsigned node = 81; node-- > 0;) put_node(*state, node, "MemTotal: 1 kB\nMemFree: 1 kB\n");
  tree_put(*state, "/proc/self/status", "Mems_allowed_list:\t0-79\n");
  tree_put(*state, "/proc/meminfo", "MemTotal: 100 kB\nMemAvailable: 90 kB\n");
  gm_host_info info = read_host(*state);
  assert_true(info.node_count == 81 && info.total_bytes == KIB(80));
  for (uint32_t i = 0; i < GM_HOST_NODES_MAX; i++) assert_int_equal(info.nodes[i].id, i);
}

static void test_names_of_processors(void **state) {
  static const struct {
    const char *file;
    const char *name;
  } cases[] = {
      {"processor : 0\nmodel name\t:  Intel(R)  Xeon(R)   Processor @ 2.60GHz \n",
       "Intel(R) Xeon(R) Processor @ 2.60GHz"},
      {"Processor : AArch64 rev 4\nHardware : Board\n", "Board"},
      {"processor : 0\ncpu\t\t: POWER9, altivec supported\n", "POWER9, altivec supported"},
      {"cpu family : 6\nmodel name : \n", ""},
      {"model name\n: x\nmodel names : y\n", ""},
      {"model name : a\001\033[2Jb\n", "a [2Jb"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tree_put(*state, "/proc/cpuinfo", cases[i].file);
    assert_string_equal(read_host(*state).cpu_name, cases[i].name);
  }
  static const char model[] = "Board Model 4\0";
  tree_put_bytes(*state, "/sys/firmware/devicetree/base/model", model, sizeof model);
  tree_put(*state, "/proc/cpuinfo", "processor : 0\nBogoMIPS : 1\n");
  assert_string_equal(read_host(*state).cpu_name, "Board Model 4");
}

static void test_a_long_name_is_cut(void **state) {
  char text[4096] = "model name : ";
  memset(text + strlen(text), 'n', 4000 - strlen(text));
  tree_put(*state, "/proc/cpuinfo", text);
  assert_int_equal(strlen(read_host(*state).cpu_name), GM_HOST_CPU_NAME_SIZE - 1);
}

static void test_cores_are_online_and_allowed(void **state) {
  tree_put(*state, "/proc/cpuinfo", "processor\t: 0\nprocessor\t: 1\nprocessor\t: 2\n");
  assert_int_equal(read_host(*state).cores, 3);
  tree_put(*state, "/sys/devices/system/cpu/online", "0-7,9\n");
  assert_int_equal(read_host(*state).cores, 9);
  tree_put(*state, "/proc/self/status", "Cpus_allowed_list:\t6-127\n");
  assert_int_equal(read_host(*state).cores, 3);
  tree_put(*state, "/sys/devices/system/cpu/online", "x\n");
  assert_int_equal(read_host(*state).cores, 122);
}

/* Any bytes in any file: no failure, no contradiction. */
static void test_garbage_gives_no_contradiction(void **state) {
  static const char *const paths[] = {"/proc/meminfo",
                                      "/proc/self/cgroup",
                                      "/proc/self/mountinfo",
                                      "/proc/self/status",
                                      "/proc/pressure/memory",
                                      "/proc/cpuinfo",
                                      "/sys/fs/cgroup/memory.max",
                                      "/sys/fs/cgroup/memory.current",
                                      "/sys/fs/cgroup/memory.stat",
                                      "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                                      "/sys/devices/system/node/node0/meminfo",
                                      "/sys/devices/system/cpu/online"};
  static const char *const words[] = {"MemTotal:",
                                      "MemAvailable:",
                                      "MemFree:",
                                      " kB\n",
                                      "\n",
                                      "0::/",
                                      "memory:",
                                      "4:memory:/\n",
                                      "/sys/fs/cgroup",
                                      " - cgroup2 c rw\n",
                                      "max",
                                      "inactive_file ",
                                      "18446744073709551615",
                                      "9",
                                      "0",
                                      "-",
                                      ",",
                                      " ",
                                      "some avg10=",
                                      "total=",
                                      "Node 0 ",
                                      "\377",
                                      "Mems_allowed_list:",
                                      "hierarchical_memory_limit "};
  unsigned seed = 20261120;
  print_message("seed %u\n", seed);
  for (int round = 0; round < 100; round++) {
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
      char text[2048] = "";
      size_t length = 0;
      for (int n = 0; n < 24; n++) {
        seed = seed * 1103515245u + 12345u;
        const char *word = words[(seed >> 16) % (sizeof words / sizeof *words)];
        memcpy(text + length, word, strlen(word));
        length += strlen(word);
        if ((seed >> 8) % 61 == 0) text[length++] = 0;
      }
      tree_put_bytes(*state, paths[i], text, length);
    }
    gm_host_info info = read_host(*state);
    assert_sane(&info);
  }
}

static void test_the_real_machine(void **state) {
  (void)state;
  gm_host_info info = read_host(NULL);
  assert_sane(&info);
  struct sysinfo system;
  assert_int_equal(sysinfo(&system), 0);
  uint64_t installed = (uint64_t)system.totalram * system.mem_unit;
  assert_true(info.total_bytes > 0 && info.total_bytes <= installed && info.mem_total_bytes == installed);
  assert_true(info.free_bytes <= info.total_bytes && info.free_state != GM_FIGURE_UNKNOWN);
  cpu_set_t set;
  assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
  assert_int_equal(info.cores, CPU_COUNT(&set));
  assert_true(info.page_bytes == (uint64_t)sysconf(_SC_PAGESIZE));
  assert_true(info.cpu_name[0] && info.read_at_ns > 0);
}

static void test_states_and_sources_have_names(void **state) {
  (void)state;
  assert_string_equal(gm_figure_state_name(GM_FIGURE_UNKNOWN), "unknown");
  assert_string_equal(gm_figure_state_name(GM_FIGURE_ESTIMATED), "estimated");
  assert_string_equal(gm_figure_state_name(GM_FIGURE_KNOWN), "known");
  assert_string_equal(gm_figure_state_name((gm_figure_state)99), "?");
  static const char *const names[] = {"none", "driver", "nvml", "sysfs", "sysman", "os", "own_accounting", "peer_api"};
  for (int i = 0; i < 8; i++) assert_string_equal(gm_figure_source_name((gm_figure_source)i), names[i]);
  assert_string_equal(gm_figure_source_name((gm_figure_source)99), "?");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_set_up, tree_tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_bad_arguments_are_named),
      TEST(test_an_empty_machine_is_unknown),
      TEST(test_total_without_free_is_possible),
      TEST(test_available_above_total_is_cut_and_estimated),
      TEST(test_huge_pages_that_overflow_stop_at_the_top),
      TEST(test_only_allowed_nodes_count),
      TEST(test_nodes_that_are_all_allowed_bound_nothing),
      TEST(test_a_node_without_memory_is_not_missed),
      TEST(test_nodes_that_bound_nothing_are_not_opened),
      TEST(test_a_node_without_figures_does_not_shrink_the_machine),
      TEST(test_what_cannot_be_read_may_be_a_bound),
      TEST(test_without_descriptors_nothing_is_known_better),
      TEST(test_more_nodes_than_the_list_holds),
      TEST(test_names_of_processors),
      TEST(test_a_long_name_is_cut),
      TEST(test_cores_are_online_and_allowed),
      TEST(test_garbage_gives_no_contradiction),
      TEST(test_the_real_machine),
      TEST(test_states_and_sources_have_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
