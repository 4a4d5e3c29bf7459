/* gm_profiler_test nvtx|roctx: what a profiler and a sanitizer are told, on a simulated tool (named by
 * NVTX_INJECTION64_PATH and GM_ROCTX_LIBRARY). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>

#include "gm/perf.h"
#include "support/pool_bench.h"

static const char *marks_word;

typedef struct marks_told {
  int depth, heaps, regions;
  const char *text;
} marks_told;

static marks_told marks_ask(void) {
  const char *(*ask)(int *depth, int *heaps, int *regions);
  void *tool = dlopen(getenv("GM_ROCTX_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
  void *symbol = tool ? dlsym(tool, "simMarks") : NULL;
  assert_non_null(symbol);
  memcpy(&ask, &symbol, sizeof ask);
  marks_told told;
  told.text = ask(&told.depth, &told.heaps, &told.regions);
  return told;
}

static void marks_open(pool_bench *b, const char *word, gm_strategy strategy, uint64_t zone) {
  const gm_pool_params params = {
      .struct_size = sizeof params, .strategy = strategy, .name = "marked", .red_zone_bytes = zone};
  counted_services_init(&b->host);
  const gm_context_params context = {.struct_size = sizeof context, .services = &b->host.services};
  pool_bench_ok(gm_context_create(&context, &b->ctx, err));
  pool_bench_ok(gm_config_set(b->ctx, "debug.ranges", word, err));
  pool_bench_ok(gm_device_open_index(b->ctx, "cpu", 0, &b->device, err));
  pool_bench_ok(gm_pool_create(b->device, &params, &b->pool, err));
}

static void marks_traffic(gm_strategy strategy, uint64_t zone, bool memory) {
  pool_bench b;
  gm_block blocks[4];
  marks_open(&b, marks_word, strategy, zone);
  for (uint64_t i = 0; i < 4; i++) {
    const gm_request request = {.bytes = 5000 + i};
    assert_true(gm_alloc(b.pool, &request, &blocks[i]) <= GM_ACQUIRE_FRESH);
  }
  marks_told told = marks_ask();
  assert_int_equal(told.depth, 0);
  assert_int_equal(told.regions, memory ? 4 : 0);
  assert_int_equal(told.heaps, !memory ? 0 : strategy == GM_STRATEGY_BUCKET ? 4 : 1);
  gm_memory range;
  uint64_t offset;
  assert_int_equal(gm_block_memory(b.pool, &blocks[0], &range, &offset), GM_OK);
  for (int i = 0; i < 4; i++) assert_int_equal(gm_free(b.pool, &blocks[i], NULL), GM_OK);
  told = marks_ask();
  assert_int_equal(told.regions, 0);
  gm_pool_trim(b.pool, 0);
  assert_int_equal(marks_ask().heaps, memory && range.wrapped ? 1 : 0); /* addresses stay as long as the pool */
  pool_bench_close(&b);
  told = marks_ask();
  assert_true(told.depth == 0 && told.heaps == 0 && told.regions == 0);
}

static void test_ranges_and_memory(void **state) {
  (void)state;
  const bool memory = strcmp(marks_word, "nvtx") == 0;
  marks_traffic(GM_STRATEGY_BUCKET, 0, memory);
  marks_traffic(GM_STRATEGY_BEST_FIT, 0, memory);
  marks_traffic(GM_STRATEGY_BUCKET, 32, memory);
  const char *text = marks_ask().text;
  assert_non_null(strstr(text, "push gm allocation at the driver, pool marked, 8192 bytes\n"));
  assert_non_null(strstr(text, "push gm free at the driver, pool marked, 8192 bytes\n"));
  assert_non_null(strstr(text, "push gm trim, pool marked, 0 bytes\n"));
  if (!memory) return;
  assert_non_null(strstr(text, "domain gm\n"));
  assert_non_null(strstr(text, "heap marked of 8192 bytes\n"));
  assert_non_null(strstr(text, "region of 5003 bytes\n")); /* with zones around it */
}

/* Named performance scopes are ranges within each other. One without a name is none. */
static void test_performance_scopes(void **state) {
  (void)state;
  pool_bench b;
  gm_perf_scope step, part, unnamed;
  marks_open(&b, marks_word, GM_STRATEGY_BUCKET, 0);
  pool_bench_ok(gm_perf_begin_context(b.ctx, "step 7", &step, err));
  pool_bench_ok(gm_perf_begin(b.pool, NULL, &unnamed, err));
  assert_int_equal(marks_ask().depth, 1);
  pool_bench_ok(gm_perf_begin(b.pool, "attention", &part, err));
  assert_int_equal(marks_ask().depth, 2);
  pool_bench_ok(gm_perf_end(&part, NULL, err));
  pool_bench_ok(gm_perf_end(&unnamed, NULL, err));
  assert_int_equal(marks_ask().depth, 1);
  pool_bench_ok(gm_perf_end(&step, NULL, err));
  assert_int_equal(marks_ask().depth, 0);
  assert_non_null(strstr(marks_ask().text, "push step 7\n"));
  assert_non_null(strstr(marks_ask().text, "push attention\n"));
  pool_bench_close(&b);
}

/* Off, the tool hears nothing more. */
static void test_off(void **state) {
  (void)state;
  pool_bench b;
  gm_block block;
  const gm_request request = {.bytes = 5000};
  const size_t before = strlen(marks_ask().text);
  marks_open(&b, "off", GM_STRATEGY_BUCKET, 0);
  assert_true(gm_alloc(b.pool, &request, &block) <= GM_ACQUIRE_FRESH);
  assert_int_equal(gm_free(b.pool, &block, NULL), GM_OK);
  pool_bench_close(&b);
  assert_int_equal(strlen(marks_ask().text), before);
}

/* Without a tool the pool works, and the log says why it is not seen. */
static void test_no_tool(void **state) {
  (void)state;
  pool_bench b;
  marks_open(&b, strcmp(marks_word, "nvtx") == 0 ? "roctx" : "nvtx", GM_STRATEGY_BUCKET, 0);
  assert_non_null(strstr(b.host.last_line, "no such tool"));
  pool_bench_close(&b);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_ranges_and_memory),
                                     cmocka_unit_test(test_performance_scopes), cmocka_unit_test(test_off)};
  const struct CMUnitTest none[] = {cmocka_unit_test(test_no_tool)};
  if (argc != 2) return 2;
  marks_word = argv[1];
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  setenv(strcmp(marks_word, "nvtx") == 0 ? "GM_ROCTX_LIBRARY" : "NVTX_INJECTION64_PATH", "/nowhere/libnone.so", 1);
  return failed + cmocka_run_group_tests(none, NULL, NULL);
}
