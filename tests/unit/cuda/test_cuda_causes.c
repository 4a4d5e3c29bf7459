/* Causes of a refusal on the simulated CUDA driver: page-locked memory, and what other processes hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "gm/pressure.h"
#include "support/causes.h"
#include "support/cuda_fixture.h"
#include "support/pool_bench.h"
#include "support/tree.h"

static void open_cuda(pool_bench *bench, const char *root, const gm_pool_params *params) {
  const gm_context_params context = {.struct_size = sizeof context, .host_root = root}; /* GM_CUDA_LIBRARY */
  pool_bench_ok(gm_context_create(&context, &bench->ctx, err));
  pool_bench_ok(gm_config_set(bench->ctx, "memory_fraction", "1", err));
  pool_bench_ok(gm_config_set(bench->ctx, "min_free_bytes", "0", err));
  pool_bench_ok(gm_device_open_index(bench->ctx, "cuda", 0, &bench->device, err));
  pool_bench_ok(gm_pool_create(bench->device, params, &bench->pool, err));
}

static void close_cuda(pool_bench *bench) {
  pool_bench_ok(gm_pool_destroy(bench->pool, err));
  pool_bench_ok(gm_device_close(bench->device, err));
  pool_bench_ok(gm_context_destroy(bench->ctx, err));
}

static void script(const char *line) {
  cuda_say("reload");
  cuda_say("set LATENCY_US 0");
  cuda_say(line);
}

/* Others hold 900 MiB of 1 GiB, and some more is the driver's own. */
static void test_other_process(void **state) {
  (void)state;
  pool_bench bench;
  gm_request request = {.bytes = 200 * MIB};
  script("set OTHERS 900m");
  open_cuda(&bench, NULL, NULL);
  const gm_explanation why = refused_as(bench.pool, &request, GM_CAUSE_OTHER_PROCESS, GM_CHANGE_FREE_ELSEWHERE);
  assert_in_range(why.change_bytes, 76 * MIB, 200 * MIB);
  assert_in_range(why.used_by_others_bytes, 900 * MIB, 1024 * MIB);
  assert_true(why.ever_fits);
  script("set OTHERS 0");
  const gm_block block = served(bench.pool, &request);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  close_cuda(&bench);
}

static const gm_pool_params pinned = {
    .struct_size = sizeof pinned, .must_be = GM_DEVICE_ACCESSIBLE, .require = GM_MEMORY_PINNED};

static void put_status(temp_folder *root, uint64_t limit) {
  char text[128];
  snprintf(text, sizeof text, "Max locked memory         %llu                %llu                bytes     \n",
           (unsigned long long)limit, (unsigned long long)limit);
  tree_put(root, "/proc/self/limits", text);
  tree_put(root, "/proc/self/status", "VmLck:\t0 kB\nCapEff:\t0000000000000000\n");
}

static void test_pinned_limit(void **state) {
  temp_folder *root = *state;
  pool_bench bench;
  const gm_request request = {.bytes = 8 * MIB};
  put_status(root, 64 * MIB);
  script("set PINNED 1m");
  open_cuda(&bench, root->path, &pinned);
  const gm_explanation why = refused_as(bench.pool, &request, GM_CAUSE_PINNED_LIMIT, GM_CHANGE_FREE);
  assert_true(why.change_bytes == 8 * MIB);
  close_cuda(&bench);
}

/* In a child whose limit is real; the rights of the process are those of a file, as the tests may run as root. */
static void refuse_lock(temp_folder *root) {
  pool_bench bench;
  char limits[4096];
  const struct rlimit limit = {64 * 1024, 64 * 1024};
  const gm_request request = {.bytes = 8 * MIB};
  put_status(root, 0);
  assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
  FILE *file = fopen("/proc/self/limits", "r");
  assert_non_null(file);
  const size_t count = fread(limits, 1, sizeof limits - 1, file);
  fclose(file);
  tree_put_bytes(root, "/proc/self/limits", limits, count);
  script("set PINNED 1m");
  open_cuda(&bench, root->path, &pinned);
  const gm_explanation why = refused_as(bench.pool, &request, GM_CAUSE_MEMLOCK, GM_CHANGE_RAISE_MEMLOCK);
  assert_true(why.change_bytes == 8 * MIB - 64 * 1024);
  close_cuda(&bench);
}

static void test_memlock(void **state) {
  const pid_t child = fork();
  int answer = -1;
  assert_true(child >= 0);
  if (!child) {
    refuse_lock(*state);
    _exit(0);
  }
  assert_int_equal(waitpid(child, &answer, 0), child);
  if (answer) fail_msg("the child answered %d", answer);
}

/* ---- groups that bound the card's memory ---- */

static void put_card_group(temp_folder *root, const char *file, const char *pci, uint64_t bytes) {
  char text[96], path[64];
  snprintf(text, sizeof text, "nvidia/%s/vidmem %llu\n", pci, (unsigned long long)bytes);
  snprintf(path, sizeof path, "/sys/fs/cgroup/job/%s", file);
  tree_put(root, path, text);
}

static gm_memory_info info_of(gm_device *device) {
  gm_memory_info info = {.struct_size = sizeof info};
  assert_int_equal(gm_device_memory_info(device, &info, NULL), GM_OK);
  return info;
}

static gm_pressure_level level_of(gm_device *device) {
  gm_pressure pressure = {.struct_size = sizeof pressure};
  assert_int_equal(gm_device_pressure(device, &pressure, NULL), GM_OK);
  return pressure.level;
}

static void put_job(temp_folder *root) {
  tree_put(root, "/proc/self/cgroup", "0::/job\n");
  tree_put(root, "/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
}

static void test_group_of_the_card(void **state) {
  temp_folder *root = *state;
  pool_bench bench;
  gm_request request = {.bytes = 300 * MIB};
  put_job(root);
  script("set OTHERS 0");
  open_cuda(&bench, root->path, NULL);
  const char *pci = gm_device_get_info(bench.device)->pci;
  put_card_group(root, "dmem.max", pci, 512 * MIB);
  put_card_group(root, "dmem.current", pci, 256 * MIB);
  const gm_memory_info info = info_of(bench.device);
  assert_true(info.total_bytes == 512 * MIB && info.free_bytes == 256 * MIB && info.borrowed_bytes == 0);
  assert_true(info.free_source == GM_SOURCE_GROUP && info.total_source == GM_SOURCE_GROUP);
  gm_explanation why = refused_as(bench.pool, &request, GM_CAUSE_CGROUP, GM_CHANGE_RAISE_CGROUP);
  assert_string_equal(why.bound, "dmem:/sys/fs/cgroup/job");
  assert_non_null(strstr(why.text, "dmem:/sys/fs/cgroup/job"));
  assert_true(why.ever_fits);
  request.bytes = 600 * MIB;
  why = refused_as(bench.pool, &request, GM_CAUSE_CGROUP, GM_CHANGE_RAISE_CGROUP);
  assert_false(why.ever_fits);
  assert_int_not_equal(level_of(bench.device), GM_PRESSURE_BORROWED);
  put_card_group(root, "dmem.min", pci, 200 * MIB);
  assert_int_equal(info_of(bench.device).borrowed_bytes, 56 * MIB);
  assert_int_equal(level_of(bench.device), GM_PRESSURE_BORROWED);
  put_card_group(root, "dmem.current", pci, 100 * MIB);
  assert_int_equal(level_of(bench.device), GM_PRESSURE_LOW);
  close_cuda(&bench);
}

/* Where the kernel has no such files only NVML knows the limits. */
static void test_limits_of_mps(void **state) {
  temp_folder *root = *state;
  pool_bench bench;
  const gm_request request = {.bytes = 300 * MIB};
  put_job(root);
  script("set OTHERS 0");
  setenv("SIMNVML_LIMITS", "/sys/fs/cgroup/job 104857600 536870912 268435456", 1);
  open_cuda(&bench, root->path, NULL);
  gm_memory_info info = info_of(bench.device);
  assert_true(info.total_bytes == 512 * MIB && info.free_bytes == 256 * MIB);
  assert_true(info.free_source == GM_SOURCE_GROUP && info.borrowed_bytes == 156 * MIB);
  assert_int_equal(level_of(bench.device), GM_PRESSURE_BORROWED);
  static gm_device_entry entries[4]; /* NVML's figure, as before the device was opened */
  size_t count = 0;
  entries[0].struct_size = sizeof entries[0];
  assert_int_equal(gm_discover_devices(bench.ctx, entries, 4, &count, NULL), GM_OK);
  size_t card = 0;
  while (card < count && entries[card].info.api != GM_API_CUDA) card++;
  assert_true(card < count);
  assert_int_equal(entries[card].memory.total_bytes, info.total_bytes);
  assert_int_equal(entries[card].memory.free_bytes, info.free_bytes);
  const gm_explanation why = refused_as(bench.pool, &request, GM_CAUSE_CGROUP, GM_CHANGE_RAISE_CGROUP);
  assert_non_null(strstr(why.bound, "MPS"));
  setenv("SIMNVML_LIMITS", "/sys/fs/cgroup/other 1 2 3", 1);
  info = info_of(bench.device);
  assert_true(info.total_bytes > 512 * MIB && info.free_source == GM_SOURCE_DRIVER && info.borrowed_bytes == 0);
  unsetenv("SIMNVML_LIMITS");
  close_cuda(&bench);
}

/* A card that fails: nothing is tried after the driver. The pool and the device close. */
static void test_device_lost(void **state) {
  (void)state;
  pool_bench bench;
  const gm_pool_params params = {.struct_size = sizeof params, .no_vmm = true};
  const gm_request request = {.bytes = 8 * MIB, .deadline_ns = UINT64_MAX}; /* no wait helps */
  script("set OTHERS 0");
  open_cuda(&bench, NULL, &params);
  cuda_say("lose 700");
  const gm_explanation why = refused_as(bench.pool, &request, GM_CAUSE_DEVICE_LOST, GM_CHANGE_REOPEN);
  assert_int_equal(why.rungs[GM_RUNG_DRIVER].count, 1);
  assert_int_equal(why.rungs[GM_RUNG_BUSY].count + why.rungs[GM_RUNG_TRIM].count + why.rungs[GM_RUNG_WAIT].count, 0);
  close_cuda(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_memlock, tree_set_up, tree_tear_down),
      cmocka_unit_test(test_other_process),
      cmocka_unit_test(test_device_lost),
      cmocka_unit_test_setup_teardown(test_group_of_the_card, tree_set_up, tree_tear_down),
      cmocka_unit_test_setup_teardown(test_limits_of_mps, tree_set_up, tree_tear_down),
      cmocka_unit_test_setup_teardown(test_pinned_limit, tree_set_up, tree_tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
