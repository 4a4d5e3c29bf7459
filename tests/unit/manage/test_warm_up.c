/* Warm-up: what is listed is there afterwards without a driver call, on both strategies, from a trace, by key. */
#include "gm/warm_up.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/pool_bench.h"
#include "support/temp_folder.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

static const gm_strategy strategies[] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};

static void open_with(pool_bench *bench, gm_strategy strategy, const char *options) {
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategy};
  pool_bench_open(bench, "null", options, &params);
}

/* Take `count` blocks of each size at once, and give them back; the driver must not be asked. */
static void check_no_driver_call(pool_bench *bench, const gm_warm_up *list, size_t count, gm_stream *stream) {
  enum { MOST = 64 };
  gm_block blocks[MOST];
  size_t taken = 0;
  uint64_t before = pool_bench_stats(bench).driver_allocs;
  for (size_t i = 0; i < count; i++) {
    for (uint64_t k = 0; k < list[i].count; k++) {
      const gm_request request = {.bytes = list[i].bytes, .stream = stream};
      assert_in_range(gm_alloc(bench->pool, &request, &blocks[taken++]), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
    }
  }
  assert_int_equal(pool_bench_stats(bench).driver_allocs, before);
  while (taken) assert_int_equal(gm_free(bench->pool, &blocks[--taken], stream), GM_OK);
}

static void test_what_is_listed_is_there(void **state) {
  (void)state;
  static const gm_warm_up list[] = {{2 * MIB, 3}, {5000, 20}, {100 * KIB, 0}, {1, 1}};
  for (size_t i = 0; i < 2; i++) {
    pool_bench bench;
    gm_stream *stream;
    gm_warm_up_result result = {.struct_size = sizeof result};
    open_with(&bench, strategies[i], "null:capacity=64M");
    pool_bench_ok(gm_stream_create(bench.device, &stream, err));
    pool_bench_ok(gm_pool_warm_up(bench.pool, list, 4, stream, &result, err));
    assert_int_equal(result.wanted, 24);
    assert_int_equal(result.blocks, 24);
    assert_true(result.bytes >= 6 * MIB + 20 * 5000 + 1);
    assert_int_equal(result.failed_bytes, 0);
    assert_int_equal(pool_bench_stats(&bench).active, 0);
    check_no_driver_call(&bench, list, 4, stream);
    check_no_driver_call(&bench, list, 4, NULL);
    check_no_driver_call(&bench, list, 4, stream);
    pool_bench_ok(gm_stream_close(stream, err));
    pool_bench_close(&bench);
  }
}

static void test_a_bucket_keeps_what_it_was_given(void **state) {
  (void)state;
  static const gm_warm_up list[] = {{4000, 10}, {4096, 10}};
  pool_bench bench;
  open_with(&bench, GM_STRATEGY_BUCKET, "null:capacity=64M");
  pool_bench_ok(gm_pool_warm_up(bench.pool, list, 2, NULL, NULL, err));
  assert_int_equal(pool_bench_stats(&bench).pooled_bytes, 20 * 4096); /* max_pooled_per_bucket is 8 */
  pool_bench_close(&bench);
}

static void test_what_is_not_to_be_had_is_reported(void **state) {
  (void)state;
  static const gm_warm_up list[] = {{MIB, 4}, {3 * MIB, 100}, {1, 5}};
  for (size_t i = 0; i < 2; i++) {
    pool_bench bench;
    gm_warm_up_result result = {.struct_size = sizeof result};
    gm_error err = {.status = GM_OK};
    open_with(&bench, strategies[i], "null:capacity=16M");
    gm_status status = gm_pool_warm_up(bench.pool, list, 3, NULL, &result, &err);
    assert_true(status == GM_ERR_OVER_LIMIT || status == GM_ERR_OUT_OF_DEVICE_MEMORY);
    assert_int_equal(err.status, status);
    assert_string_equal(err.op, "gm_pool_warm_up");
    assert_int_equal(result.wanted, 109);
    assert_in_range(result.blocks, 6, 8);
    assert_int_equal(result.failed_bytes, 3 * MIB);
    gm_stats stats = pool_bench_stats(&bench);
    assert_int_equal(stats.active, 0);
    assert_true(stats.pooled_bytes >= result.bytes); /* what was had stays */
    pool_bench_close(&bench);
  }
}

static void test_bad_arguments_change_nothing(void **state) {
  (void)state;
  static const gm_warm_up zero[] = {{0, 1}}, many[] = {{1, UINT64_MAX}, {1, 1}};
  pool_bench bench;
  gm_warm_up_result result = {.struct_size = 4};
  open_with(&bench, GM_STRATEGY_BUCKET, "null:capacity=16M");
  assert_int_equal(gm_pool_warm_up(NULL, zero, 1, NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_warm_up(bench.pool, NULL, 1, NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_warm_up(bench.pool, zero, 1, NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_warm_up(bench.pool, many, 2, NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_warm_up(bench.pool, NULL, 0, NULL, &result, NULL), GM_ERR_INVALID_ARGUMENT);
  pool_bench_ok(gm_pool_warm_up(bench.pool, NULL, 0, NULL, NULL, err));
  assert_int_equal(pool_bench_stats(&bench).driver_allocs, 0);
  pool_bench_close(&bench);
}

/* More than there is ends at the limit of the device, not at that of the host. */
static void test_an_endless_list_ends(void **state) {
  (void)state;
  static const gm_warm_up list[] = {{64 * KIB, UINT64_MAX}};
  pool_bench bench;
  gm_warm_up_result result = {.struct_size = sizeof result};
  open_with(&bench, GM_STRATEGY_BUCKET, "null:capacity=16M");
  assert_int_not_equal(gm_pool_warm_up(bench.pool, list, 1, NULL, &result, NULL), GM_OK);
  assert_int_equal(result.blocks, 256);
  assert_int_equal(pool_bench_stats(&bench).pooled_bytes, 16 * MIB);
  pool_bench_close(&bench);
}

/* This is so when it filled the device, too, and the bounds of the caches are at their least. */
static void test_what_was_given_stays_under_pressure(void **state) {
  (void)state;
  static const gm_warm_up list[] = {{64 * KIB, 256}};
  pool_bench bench;
  open_with(&bench, GM_STRATEGY_BUCKET, "null:capacity=16M");
  pool_bench_ok(gm_pool_warm_up(bench.pool, list, 1, NULL, NULL, err));
  assert_int_equal(pool_bench_stats(&bench).pooled_bytes, 16 * MIB);
  pool_bench_close(&bench);
}

/* Blocks that a list asked for and did not get, no bucket keeps afterwards. */
static void test_a_bucket_keeps_no_more_than_it_was_given(void **state) {
  (void)state;
  static const gm_warm_up list[] = {{64 * KIB, UINT64_MAX}};
  enum { FIRST = 256, ALL = 300 };
  pool_bench bench;
  gm_block blocks[ALL];
  const gm_request request = {.bytes = 64 * KIB};
  open_with(&bench, GM_STRATEGY_BUCKET, "null:capacity=64M");
  pool_bench_ok(gm_pool_set_max_bytes(bench.pool, FIRST * 64 * KIB, err));
  assert_int_not_equal(gm_pool_warm_up(bench.pool, list, 1, NULL, NULL, NULL), GM_OK);
  assert_int_equal(pool_bench_stats(&bench).pooled_bytes, FIRST * 64 * KIB);
  pool_bench_ok(gm_pool_set_max_bytes(bench.pool, 0, err));
  for (int i = 0; i < ALL; i++) {
    assert_in_range(gm_alloc(bench.pool, &request, &blocks[i]), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
  }
  for (int i = 0; i < ALL; i++) assert_int_equal(gm_free(bench.pool, &blocks[i], NULL), GM_OK);
  assert_int_equal(pool_bench_stats(&bench).pooled_bytes, FIRST * 64 * KIB);
  pool_bench_close(&bench);
}

static void test_every_lack_of_host_memory_gives_all_back(void **state) {
  (void)state;
  static const gm_warm_up list[] = {{4096, 100}};
  gm_status status = GM_ERR_OUT_OF_HOST_MEMORY;
  for (size_t n = 1; status; n++) {
    pool_bench bench;
    open_with(&bench, GM_STRATEGY_BUCKET, "null:capacity=16M");
    bench.host.fail_at = atomic_load(&bench.host.calls) + n;
    bench.host.fail_count = 1;
    status = gm_pool_warm_up(bench.pool, list, 1, NULL, NULL, NULL);
    bench.host.fail_at = 0;
    assert_int_equal(pool_bench_stats(&bench).active, 0);
    pool_bench_close(&bench);
    assert_true(n < 1000);
  }
}

static void test_from_a_trace(void **state) {
  (void)state;
  static const gm_warm_up at_once[] = {{4096, 2}, {100000, 1}, {3 * MIB, 1}};
  static const char text[] =
      "gmtrace 1\na 1 4096 0\na 2 4000 0\na 3 100000 1\nf 1\nf 2\na 4 3145728 0\na 5 4096 0\na 6 4096 0\n";
  temp_folder folder;
  temp_folder_make(&folder);
  const char *path = temp_folder_write(&folder, "trace", text, sizeof text - 1);
  for (size_t i = 0; i < 2; i++) {
    pool_bench bench;
    gm_warm_up_result result = {.struct_size = sizeof result};
    open_with(&bench, strategies[i], "null:capacity=64M");
    pool_bench_ok(gm_pool_warm_up_from_trace(bench.pool, path, NULL, &result, err));
    assert_int_equal(result.blocks, 4); /* of BEST_FIT the peak, and three that have pages of their own */
    check_no_driver_call(&bench, at_once, 3, NULL);
    assert_int_equal(gm_pool_warm_up_from_trace(bench.pool, "/nowhere", NULL, &result, NULL), GM_ERR_NOT_FOUND);
    pool_bench_close(&bench);
  }
  temp_folder_remove(&folder);
}

static void test_keys_warm_up_new_pools(void **state) {
  (void)state;
  static const gm_warm_up list[] = {{4096, 12}, {MIB, 1}, {2 * MIB, 1}};
  pool_bench bench;
  pool_bench_open_device(&bench, "null", "null:capacity=64M");
  pool_bench_ok(gm_config_set(bench.ctx, "warmup", "4K:12,1M:1", err));
  pool_bench_ok(gm_config_set(bench.ctx, "pre_allocate_sizes", "2M", err));
  pool_bench_ok(gm_config_set(bench.ctx, "pre_allocate", "true", err));
  pool_bench_ok(gm_pool_create(bench.device, NULL, &bench.pool, err));
  check_no_driver_call(&bench, list, 3, NULL);
  pool_bench_ok(gm_pool_destroy(bench.pool, err));
  pool_bench_ok(gm_config_set(bench.ctx, "warmup_enabled", "false", err));
  pool_bench_ok(gm_config_set(bench.ctx, "pre_allocate", "false", err));
  pool_bench_ok(gm_pool_create(bench.device, NULL, &bench.pool, err));
  assert_int_equal(pool_bench_stats(&bench).driver_allocs, 0);
  pool_bench_close(&bench);
}

static void test_a_key_that_asks_too_much_is_logged(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open_device(&bench, "null", "null:capacity=16M");
  pool_bench_ok(gm_config_set(bench.ctx, "warmup", "4M:2,1G:1", err));
  pool_bench_ok(gm_pool_create(bench.device, NULL, &bench.pool, err));
  assert_non_null(strstr(bench.host.last_line, "warm-up: 2 of 3 blocks were had"));
  assert_true(pool_bench_stats(&bench).pooled_bytes >= 8 * MIB);
  pool_bench_close(&bench);
}

/* A size without a count is one block. */
static void test_a_size_alone_is_one_block(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open_device(&bench, "null", "null:capacity=16M");
  pool_bench_ok(gm_config_set(bench.ctx, "pre_allocate_sizes", "4M,1G", err));
  pool_bench_ok(gm_config_set(bench.ctx, "pre_allocate", "true", err));
  pool_bench_ok(gm_pool_create(bench.device, NULL, &bench.pool, err));
  assert_non_null(strstr(bench.host.last_line, "warm-up: 1 of 2 blocks were had"));
  pool_bench_close(&bench);
}

static void test_bytes_are_kept_without_a_list(void **state) {
  (void)state;
  static const gm_pool_params params[] = {{.struct_size = sizeof *params},
                                          {.struct_size = sizeof *params, .no_vmm = true}};
  static const gm_warm_up pieces[] = {{8 * MIB, 3}, {MIB, 2}};
  for (size_t i = 0; i < 2; i++) {
    pool_bench bench;
    pool_bench_open(&bench, "null", "null:capacity=64M,max_alloc=8M", &params[i]);
    pool_bench_ok(gm_pool_prepare(bench.pool, 0, err));
    assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 0);
    pool_bench_ok(gm_pool_prepare(bench.pool, 26 * MIB, err));
    const gm_stats stats = pool_bench_stats(&bench);
    assert_int_equal(stats.active, 0);
    assert_in_range(stats.pooled_bytes, 26 * MIB, 40 * MIB);
    pool_bench_ok(gm_pool_prepare(bench.pool, 26 * MIB, err)); /* it keeps them already */
    assert_int_equal(pool_bench_stats(&bench).reserved_bytes, stats.reserved_bytes);
    check_no_driver_call(&bench, pieces, 2, NULL);
    pool_bench_close(&bench);
  }
}

static void test_bytes_that_are_not_to_be_had(void **state) {
  (void)state;
  pool_bench bench;
  gm_error err = {.status = GM_OK};
  open_with(&bench, GM_STRATEGY_BEST_FIT, "null:capacity=16M");
  const gm_status status = gm_pool_prepare(bench.pool, 20 * MIB, &err);
  assert_true(status == GM_ERR_OVER_LIMIT || status == GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_string_equal(err.op, "gm_pool_prepare");
  assert_int_equal(pool_bench_stats(&bench).active, 0);
  assert_int_not_equal(gm_pool_prepare(bench.pool, UINT64_MAX, &err), GM_OK);
  assert_int_equal(gm_pool_prepare(NULL, MIB, NULL), GM_ERR_INVALID_ARGUMENT);
  pool_bench_close(&bench);
  open_with(&bench, GM_STRATEGY_BUCKET, "null:capacity=16M");
  assert_int_equal(gm_pool_prepare(bench.pool, MIB, &err), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(err.message, "gm_pool_warm_up"));
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_what_is_listed_is_there),
      cmocka_unit_test(test_a_bucket_keeps_what_it_was_given),
      cmocka_unit_test(test_what_is_not_to_be_had_is_reported),
      cmocka_unit_test(test_bad_arguments_change_nothing),
      cmocka_unit_test(test_an_endless_list_ends),
      cmocka_unit_test(test_what_was_given_stays_under_pressure),
      cmocka_unit_test(test_a_bucket_keeps_no_more_than_it_was_given),
      cmocka_unit_test(test_every_lack_of_host_memory_gives_all_back),
      cmocka_unit_test(test_from_a_trace),
      cmocka_unit_test(test_keys_warm_up_new_pools),
      cmocka_unit_test(test_a_key_that_asks_too_much_is_logged),
      cmocka_unit_test(test_a_size_alone_is_one_block),
      cmocka_unit_test(test_bytes_are_kept_without_a_list),
      cmocka_unit_test(test_bytes_that_are_not_to_be_had),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
