/* Size classes of buckets: how a request is rounded, which pooled blocks serve it, and who chooses the classes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "gm/cleanup.h"
#include "support/explained.h"
#include "support/pool_bench.h"

#define KIB UINT64_C(1024)
#define MIB (UINT64_C(1) << 20)

static const gm_pool_params by_name = {.struct_size = sizeof by_name, .strategy = GM_STRATEGY_BUCKET};

/* A pool of buckets; `bits` NULL: nobody set the key. `named`: by its parameters, not by the configuration. */
static void open_buckets(pool_bench *bench, const char *bits, bool named) {
  pool_bench_open_device(bench, "null", "null:capacity=256M");
  if (bits) pool_bench_ok(gm_config_set(bench->ctx, "size_class_bits", bits, err));
  if (!named) pool_bench_ok(gm_config_set(bench->ctx, "allocation_strategy", "bucket", err));
  pool_bench_ok(gm_pool_create(bench->device, named ? &by_name : NULL, &bench->pool, err));
}

static gm_block take(gm_pool *pool, uint64_t bytes, gm_acquire expected) {
  const gm_request request = {.bytes = bytes};
  gm_block block = {0};
  assert_int_equal(gm_alloc(pool, &request, &block), expected);
  return block;
}

static void give(gm_pool *pool, const gm_block *block) { assert_int_equal(gm_free(pool, block, NULL), GM_OK); }

static uint64_t rounded(const char *bits, bool named, uint64_t bytes) {
  pool_bench bench;
  open_buckets(&bench, bits, named);
  const gm_block block = take(bench.pool, bytes, GM_ACQUIRE_FRESH);
  give(bench.pool, &block);
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, block.bytes);
  pool_bench_close(&bench);
  return block.bytes;
}

static void test_the_bits_divide_powers_of_two(void **state) {
  (void)state;
  const uint64_t bytes = 4 * MIB + 1;
  assert_int_equal(rounded("0", false, bytes), 8 * MIB);
  assert_int_equal(rounded("1", false, bytes), 6 * MIB);
  assert_int_equal(rounded("2", false, bytes), 5 * MIB);
  assert_int_equal(rounded("3", false, bytes), 4 * MIB + 512 * KIB);
  assert_int_equal(rounded("5", false, bytes), 4 * MIB + 128 * KIB);
  assert_int_equal(rounded("5", true, bytes), 4 * MIB + 128 * KIB);
  assert_int_equal(rounded("3", false, 4 * MIB), 4 * MIB);
}

static void test_who_asks_for_buckets_by_name_has_powers_of_two(void **state) {
  (void)state;
  assert_int_equal(rounded(NULL, true, 4 * MIB + 1), 8 * MIB);
  assert_int_equal(rounded(NULL, false, 4 * MIB + 1), 8 * MIB); /* the word of the key means the same */
  assert_int_equal(rounded(NULL, false, 700000), MIB);
}

static void test_small_sizes_are_whole_units_of_the_device(void **state) {
  (void)state;
  pool_bench bench;
  open_buckets(&bench, "5", false);
  const uint64_t unit = gm_device_get_info(bench.device)->alignment;
  for (uint64_t bytes = 1; bytes < 64 * unit; bytes += unit / 2 + 1) {
    const gm_block block = take(bench.pool, bytes, GM_ACQUIRE_FRESH);
    assert_true(block.bytes >= bytes && block.bytes % unit == 0);
    give(bench.pool, &block);
    gm_pool_trim(bench.pool, 0);
  }
  pool_bench_close(&bench);
}

static void test_a_block_serves_requests_of_more_than_half_of_it(void **state) {
  (void)state;
  pool_bench bench;
  open_buckets(&bench, "3", false);
  const gm_block six = take(bench.pool, 6 * MIB, GM_ACQUIRE_FRESH);
  give(bench.pool, &six);
  gm_block block = take(bench.pool, 3 * MIB + 256 * KIB, GM_ACQUIRE_OK);
  assert_int_equal(block.address, six.address);
  give(bench.pool, &block);
  block = take(bench.pool, 3 * MIB, GM_ACQUIRE_FRESH);
  const gm_block other = take(bench.pool, 6 * MIB + 1, GM_ACQUIRE_FRESH);
  give(bench.pool, &block);
  give(bench.pool, &other);
  block = take(bench.pool, 3 * MIB, GM_ACQUIRE_OK); /* its own class comes first */
  assert_int_equal(block.bytes, 3 * MIB);
  give(bench.pool, &block);
  pool_bench_close(&bench);
}

static void test_a_larger_class_serves(void **state) {
  (void)state;
  pool_bench bench;
  open_buckets(&bench, "3", false);
  const gm_block six = take(bench.pool, 6 * MIB, GM_ACQUIRE_FRESH);
  give(bench.pool, &six);
  pool_bench_ok(gm_pool_set_max_bytes(bench.pool, 6 * MIB, err));
  const gm_request served = {.bytes = 4 * MIB, .flags = GM_POOLED_ONLY}, not_served = {.bytes = 2 * MIB};
  gm_block block, none;
  assert_true(explained(bench.pool, &served).largest_pooled_bytes == 6 * MIB);
  assert_int_equal(explained_alloc(bench.pool, &served, &block), GM_ACQUIRE_OK);
  assert_int_equal(explained_alloc(bench.pool, &not_served, &none), GM_ACQUIRE_OVER_LIMIT);
  give(bench.pool, &block);
  pool_bench_close(&bench);
}

static void test_a_clean_up_drops_the_classes_that_nobody_asks_for(void **state) {
  (void)state;
  pool_bench bench;
  open_buckets(&bench, "3", false);
  gm_block blocks[3];
  for (uint64_t i = 0; i < 3; i++) blocks[i] = take(bench.pool, (8 + 8 * i) * MIB, GM_ACQUIRE_FRESH);
  for (uint64_t i = 0; i < 3; i++) give(bench.pool, &blocks[i]);
  const gm_block used = take(bench.pool, 16 * MIB, GM_ACQUIRE_OK);
  give(bench.pool, &used);
  uint64_t bytes = 0;
  pool_bench_ok(gm_pool_cleanup(bench.pool, 16.0 / 256, false, &bytes, err));
  assert_int_equal(bytes, 32 * MIB);
  const gm_block kept = take(bench.pool, 16 * MIB, GM_ACQUIRE_OK);
  give(bench.pool, &kept);
  pool_bench_close(&bench);
}

/* Frees a block of each size, in that order, and returns the pool's figures before anything is given back. */
static gm_stats keep_idle(pool_bench *bench, const uint64_t *bytes, int count) {
  gm_block blocks[8];
  for (int i = 0; i < count; i++) blocks[i] = take(bench->pool, bytes[i], GM_ACQUIRE_FRESH);
  for (int i = 0; i < count; i++) give(bench->pool, &blocks[i]);
  return pool_bench_stats(bench);
}

static void check_given(pool_bench *bench, const gm_stats *before, uint64_t frees, uint64_t bytes) {
  const gm_stats now = pool_bench_stats(bench);
  assert_int_equal(now.driver_frees - before->driver_frees, frees);
  assert_int_equal(before->reclaimable_bytes - now.reclaimable_bytes, bytes);
}

static void test_a_trim_takes_the_one_block_that_is_enough(void **state) {
  (void)state;
  const uint64_t sizes[] = {16 * MIB, 4 * MIB, 2 * MIB, 64 * MIB, MIB};
  pool_bench bench;
  open_buckets(&bench, "3", false);
  gm_stats before = keep_idle(&bench, sizes, 5);
  assert_int_equal(gm_pool_trim(bench.pool, before.reclaimable_bytes - 3 * MIB / 2), 2 * MIB);
  check_given(&bench, &before, 1, 2 * MIB);
  before = pool_bench_stats(&bench);
  assert_int_equal(gm_pool_trim(bench.pool, 32 * MIB), 64 * MIB); /* what a large block was, the small ones survive */
  check_given(&bench, &before, 1, 64 * MIB);
  pool_bench_close(&bench);
}

static void test_a_trim_takes_the_oldest_where_no_block_is_enough(void **state) {
  (void)state;
  const uint64_t sizes[] = {4 * MIB, 2 * MIB, 16 * MIB, 8 * MIB, 12 * MIB};
  pool_bench bench;
  open_buckets(&bench, "3", false);
  const gm_stats before = keep_idle(&bench, sizes, 5);
  assert_int_equal(gm_pool_trim(bench.pool, 42 * MIB - 17 * MIB), 18 * MIB); /* 4, 2, and 12 for the 11 left */
  check_given(&bench, &before, 3, 18 * MIB);
  assert_int_equal(gm_pool_trim(bench.pool, 0), 24 * MIB);
  check_given(&bench, &before, 5, 42 * MIB);
  pool_bench_close(&bench);
}

static void test_a_cap_takes_only_what_the_request_lacks(void **state) {
  (void)state;
  const uint64_t sizes[] = {16 * MIB, 4 * MIB, 2 * MIB, MIB};
  const gm_request five = {.bytes = 5 * MIB, .flags = GM_DEDICATED};
  pool_bench bench;
  gm_block block;
  open_buckets(&bench, "3", false);
  const gm_block held = take(bench.pool, 8 * MIB, GM_ACQUIRE_FRESH);
  const gm_stats before = keep_idle(&bench, sizes, 4);
  pool_bench_ok(gm_pool_set_max_bytes(bench.pool, 32 * MIB, err));
  assert_int_equal(explained_alloc(bench.pool, &five, &block), GM_ACQUIRE_FRESH);
  check_given(&bench, &before, 1, 4 * MIB); /* 31 + 5 are 4 more than 32 */
  give(bench.pool, &block);
  give(bench.pool, &held);
  pool_bench_close(&bench);
}

static void test_best_fit_has_no_classes(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "null", "null:capacity=256M", NULL);
  const gm_block block = take(bench.pool, 4 * MIB + 1, GM_ACQUIRE_FRESH);
  assert_int_equal(block.bytes, 4 * MIB + 256);
  give(bench.pool, &block);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_bits_divide_powers_of_two),
      cmocka_unit_test(test_who_asks_for_buckets_by_name_has_powers_of_two),
      cmocka_unit_test(test_small_sizes_are_whole_units_of_the_device),
      cmocka_unit_test(test_a_block_serves_requests_of_more_than_half_of_it),
      cmocka_unit_test(test_a_larger_class_serves),
      cmocka_unit_test(test_a_clean_up_drops_the_classes_that_nobody_asks_for),
      cmocka_unit_test(test_a_trim_takes_the_one_block_that_is_enough),
      cmocka_unit_test(test_a_trim_takes_the_oldest_where_no_block_is_enough),
      cmocka_unit_test(test_a_cap_takes_only_what_the_request_lacks),
      cmocka_unit_test(test_best_fit_has_no_classes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
