/* Pressure of devices, pools and the host: levels, hysteresis, what gm keeps for reuse counts as free. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gm/pressure.h"
#include "support/pool_bench.h"
#include "test_data.h"

#define MIB (UINT64_C(1) << 20)

static gm_block take(const pool_bench *bench, uint64_t bytes) {
  gm_request request = {.bytes = bytes};
  gm_block block;
  assert_true(gm_alloc(bench->pool, &request, &block) <= GM_ACQUIRE_FRESH);
  return block;
}

static gm_pressure of_pool(const pool_bench *bench) {
  gm_pressure pressure = {.struct_size = sizeof pressure};
  pool_bench_ok(gm_pool_pressure(bench->pool, &pressure, err));
  return pressure;
}

static gm_pressure of_device(const pool_bench *bench) {
  gm_pressure pressure = {.struct_size = sizeof pressure};
  pool_bench_ok(gm_device_pressure(bench->device, &pressure, err));
  return pressure;
}

static void test_levels_of_a_pool(void **state) {
  (void)state;
  pool_bench bench;
  gm_pool_params params = {.struct_size = sizeof params, .max_bytes = 100 * MIB};
  pool_bench_open(&bench, "null", "null:capacity=200M", &params);
  gm_block blocks[4];
  assert_int_equal(of_pool(&bench).level, GM_PRESSURE_LOW);
  blocks[0] = take(&bench, 64 * MIB);
  gm_pressure pressure = of_pool(&bench);
  assert_int_equal(pressure.level, GM_PRESSURE_MEDIUM);
  assert_int_equal(pressure.used_bytes, 64 * MIB);
  assert_int_equal(pressure.total_bytes, 100 * MIB);
  assert_true(pressure.ratio == 0.64);
  blocks[1] = take(&bench, 16 * MIB);
  assert_int_equal(of_pool(&bench).level, GM_PRESSURE_HIGH);
  blocks[2] = take(&bench, 16 * MIB);
  assert_int_equal(of_pool(&bench).level, GM_PRESSURE_CRITICAL);
  assert_int_equal(gm_free(bench.pool, &blocks[2], NULL), GM_OK); /* pooled, and free */
  assert_int_equal(of_pool(&bench).level, GM_PRESSURE_HIGH);
  assert_int_equal(gm_free(bench.pool, &blocks[1], NULL), GM_OK);
  assert_int_equal(gm_free(bench.pool, &blocks[0], NULL), GM_OK);
  assert_int_equal(of_pool(&bench).level, GM_PRESSURE_LOW);
  pool_bench_close(&bench);
}

static void test_a_level_is_left_late(void **state) {
  (void)state;
  pool_bench bench;
  gm_pool_params params = {.struct_size = sizeof params, .max_bytes = 100 * MIB};
  pool_bench_open(&bench, "null", "null:capacity=200M", &params);
  gm_block big = take(&bench, 32 * MIB), middle = take(&bench, 16 * MIB), small = take(&bench, 12 * MIB);
  assert_int_equal(of_pool(&bench).level, GM_PRESSURE_MEDIUM); /* 64: rounded */
  gm_block tip = take(&bench, MIB / 2);
  assert_int_equal(gm_free(bench.pool, &small, NULL), GM_OK);
  pool_bench_ok(gm_pool_set_max_bytes(bench.pool, 82 * MIB, err)); /* 48.5 of 82: 0.591 */
  assert_int_equal(of_pool(&bench).level, GM_PRESSURE_MEDIUM);
  pool_bench_ok(gm_pool_set_max_bytes(bench.pool, 84 * MIB, err)); /* 0.577: below 0.60 - 0.02 */
  assert_int_equal(of_pool(&bench).level, GM_PRESSURE_LOW);
  pool_bench_ok(gm_pool_set_max_bytes(bench.pool, 82 * MIB, err));
  assert_int_equal(of_pool(&bench).level, GM_PRESSURE_LOW);
  assert_int_equal(gm_free(bench.pool, &big, NULL), GM_OK);
  assert_int_equal(gm_free(bench.pool, &middle, NULL), GM_OK);
  assert_int_equal(gm_free(bench.pool, &tip, NULL), GM_OK);
  pool_bench_close(&bench);
}

static void test_pooled_memory_is_no_pressure_on_a_device(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "null", "null:capacity=128M", NULL);
  gm_block block = take(&bench, 128 * MIB);
  gm_pressure pressure = of_device(&bench);
  assert_int_equal(pressure.level, GM_PRESSURE_CRITICAL);
  assert_int_equal(pressure.total_bytes, 128 * MIB);
  assert_true(pressure.ratio == 1.0);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  assert_int_equal(pool_bench_stats(&bench).pooled_bytes, 128 * MIB);
  pressure = of_device(&bench);
  assert_int_equal(pressure.level, GM_PRESSURE_LOW);
  assert_int_equal(pressure.used_bytes, 0);
  pool_bench_close(&bench);
}

static void test_thresholds_come_from_the_configuration(void **state) {
  (void)state;
  pool_bench bench;
  gm_error failure;
  pool_bench_open(&bench, "null", "null:capacity=100M", NULL);
  gm_block block = take(&bench, 32 * MIB);
  assert_int_equal(of_device(&bench).level, GM_PRESSURE_LOW);
  pool_bench_ok(gm_config_set(bench.ctx, "pressure.medium", "0.1", err));
  pool_bench_ok(gm_config_set(bench.ctx, "pressure.high", "0.3", err));
  assert_int_equal(of_device(&bench).level, GM_PRESSURE_HIGH);
  pool_bench_ok(gm_config_set(bench.ctx, "pressure.medium", "0.5", err));
  gm_pressure pressure = {.struct_size = sizeof pressure, .ratio = 42};
  assert_int_equal(gm_device_pressure(bench.device, &pressure, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(failure.message, "`high`"));
  assert_true(pressure.ratio == 42);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  pool_bench_close(&bench);
}

static void test_the_host(void **state) {
  (void)state;
  pool_bench bench;
  gm_error failure;
  pool_bench_open(&bench, "null", NULL, NULL);
  gm_pressure pressure = {.struct_size = sizeof pressure};
  pool_bench_ok(gm_host_pressure(bench.ctx, &pressure, err));
  assert_true(pressure.total_bytes > 0 && pressure.used_bytes <= pressure.total_bytes);
  assert_true(pressure.ratio >= 0 && pressure.ratio <= 1);
  pressure.struct_size = 0;
  assert_int_equal(gm_host_pressure(bench.ctx, &pressure, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_device_pressure(bench.device, &pressure, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_pressure(bench.pool, &pressure, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_host_pressure(bench.ctx, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_host_pressure(NULL, &pressure, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_device_pressure(NULL, &pressure, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_pressure(NULL, &pressure, &failure), GM_ERR_INVALID_ARGUMENT);
  pool_bench_close(&bench);
}

static void test_a_host_that_says_nothing(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  gm_context_params params = {.struct_size = sizeof params,
                              .services = &host.services,
                              .host_root = GM_TEST_DATA "/no-such-root",
                              .ignore_environment = true};
  gm_context *ctx;
  gm_error failure;
  pool_bench_ok(gm_context_create(&params, &ctx, err));
  gm_pressure pressure = {.struct_size = sizeof pressure, .ratio = 42};
  assert_int_equal(gm_host_pressure(ctx, &pressure, &failure), GM_ERR_UNAVAILABLE);
  assert_true(pressure.ratio == 42);
  pool_bench_ok(gm_context_destroy(ctx, err));
  counted_services_check(&host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_levels_of_a_pool),
      cmocka_unit_test(test_a_level_is_left_late),
      cmocka_unit_test(test_pooled_memory_is_no_pressure_on_a_device),
      cmocka_unit_test(test_thresholds_come_from_the_configuration),
      cmocka_unit_test(test_the_host),
      cmocka_unit_test(test_a_host_that_says_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
