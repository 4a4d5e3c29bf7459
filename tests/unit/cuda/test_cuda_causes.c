/* Causes of a refusal on the simulated CUDA driver: page-locked memory, and what other processes hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

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

/* Of 1 GiB others hold 900 MiB, and some more that is the driver's own. */
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
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_memlock, tree_set_up, tree_tear_down),
                                     cmocka_unit_test(test_other_process), cmocka_unit_test(test_device_lost),
                                     cmocka_unit_test_setup_teardown(test_pinned_limit, tree_set_up, tree_tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
