/* Requests of every sort: gm_alloc and gm_explain refuse alike, and gm_explain tells each refusal. On the CPU and null
 * backends; test_opencl_requests.c and test_vulkan_requests.c do it on an engine's device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/host_upstream.h"
#include "support/pool_bench.h"
#include "support/request_sweep.h"
#include "support/tree.h"

/* On a small machine of its own: gm_explain reads the host's figures each time. */
static void sweep(const char *backend, const char *options, bool contents, unsigned least) {
  pool_bench bench;
  gm_stream *stream;
  temp_folder root;
  temp_folder_make(&root);
  tree_put(&root, "/proc/meminfo", "MemTotal: 8388608 kB\nMemFree: 4194304 kB\nMemAvailable: 4194304 kB\n");
  pool_bench_open_on(&bench, backend, options, root.path);
  pool_bench_ok(gm_pool_create(bench.device, NULL, &bench.pool, err));
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  assert_in_range(sweep_device(bench.device, stream, contents ? stream : NULL), sweep_least(least), 6000);
  pool_bench_ok(gm_stream_close(stream, err));
  pool_bench_close(&bench);
  temp_folder_remove(&root);
}

static void test_on_the_cpu(void **state) {
  (void)state;
  sweep("cpu", "", true, 500);
}

static void test_on_a_device_without_contents(void **state) {
  (void)state;
  sweep("null", "null:capacity=64M", false, 100);
}

/* No memory of the null device can be mapped: that is no failure, and the report says it. */
static void test_a_kind_of_memory_that_is_not_there(void **state) {
  (void)state;
  static const gm_strategy strategies[] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};
  for (size_t i = 0; i < 2; i++) {
    const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategies[i]};
    const gm_request request = {.bytes = 100, .flags = GM_HOST_VISIBLE};
    gm_explanation why = {.struct_size = sizeof why};
    pool_bench bench;
    gm_block block;
    pool_bench_open(&bench, "null", "null:capacity=64M", &params);
    assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_INVALID);
    pool_bench_ok(gm_explain(bench.pool, &request, &why, err));
    assert_int_equal(why.status, GM_ERR_NOT_SUPPORTED);
    assert_non_null(strstr(why.text, "GM_HOST_VISIBLE"));
    pool_bench_close(&bench);
  }
}

/* Memory that an upstream gives is taken from the system, too. */
static void test_memory_of_an_upstream_is_committed(void **state) {
  (void)state;
  enum { BYTES = 8 << 20 };
  static unsigned char resident[BYTES / 4096 + 1];
  const gm_pool_params params = {
      .struct_size = sizeof params, .strategy = GM_STRATEGY_BUCKET, .upstream = &host_upstream};
  const gm_request request = {.bytes = BYTES, .flags = GM_COMMIT};
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  pool_bench bench;
  gm_block block;
  pool_bench_open(&bench, "cpu", "", &params);
  assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_FRESH);
  const uintptr_t first = (uintptr_t)block.address & ~(page - 1), end = (uintptr_t)block.address + BYTES;
  assert_int_equal(mincore((void *)first, end - first, resident), 0);
  for (size_t i = 0; i < (end - first) / page; i++) assert_true(resident[i] & 1);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_on_the_cpu),
      cmocka_unit_test(test_on_a_device_without_contents),
      cmocka_unit_test(test_a_kind_of_memory_that_is_not_there),
      cmocka_unit_test(test_memory_of_an_upstream_is_committed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
