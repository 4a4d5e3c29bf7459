/* Small blocks have pages of their own: a few that live long do not hold the handles of large ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "gm/cleanup.h"
#include "support/pool_bench.h"

#define MIB (UINT64_C(1) << 20)

enum { PAIRS = 400 };

static gm_pool_params any_pool(void) { return (gm_pool_params){.struct_size = sizeof(gm_pool_params)}; }

static gm_block take(const pool_bench *bench, uint64_t bytes) {
  const gm_request request = {.bytes = bytes};
  gm_block block = {0};
  assert_true(gm_acquired(gm_alloc(bench->pool, &request, &block)));
  return block;
}

static void give(const pool_bench *bench, const gm_block *block) {
  assert_int_equal(gm_free(bench->pool, block, NULL), GM_OK);
}

/* Takes a large and a small block by turns, gives the large ones back, and trims. Returns what the pool still has. */
static uint64_t reserved_after_trim(pool_bench *bench, uint64_t large_bytes, uint64_t small_bytes) {
  static gm_block large[PAIRS], small[PAIRS];
  for (int i = 0; i < PAIRS; i++) {
    large[i] = take(bench, large_bytes);
    small[i] = take(bench, small_bytes);
  }
  for (int i = 0; i < PAIRS; i++) give(bench, &large[i]);
  gm_pool_trim(bench->pool, 0);
  const uint64_t reserved = pool_bench_stats(bench).reserved_bytes;
  for (int i = 0; i < PAIRS; i++) give(bench, &small[i]);
  gm_pool_trim(bench->pool, 0);
  assert_int_equal(pool_bench_stats(bench).reserved_bytes, 0);
  return reserved;
}

static void test_small_blocks_hold_only_their_own_pages(void **state) {
  (void)state;
  static const uint64_t larges[] = {MIB, 17 * MIB, 100 * MIB}, smalls[] = {512, 32 << 10, 128 << 10};
  for (size_t i = 0; i < 3; i++) {
    for (size_t k = 0; k < 3; k++) {
      pool_bench bench;
      const gm_pool_params params = any_pool();
      pool_bench_open(&bench, "null", "null:capacity=80G", &params);
      const uint64_t reserved = reserved_after_trim(&bench, larges[i], smalls[k]);
      assert_in_range(reserved, PAIRS * smalls[k], PAIRS * smalls[k] * 5 / 4 + 4 * MIB);
      pool_bench_close(&bench);
    }
  }
}

/* A small request that can get no page is served from large memory rather than refused. */
static void test_a_full_pool_serves_small_requests_from_large_memory(void **state) {
  (void)state;
  pool_bench bench;
  gm_pool_params params = any_pool();
  params.max_bytes = 16 * MIB;
  pool_bench_open(&bench, "null", "null:capacity=64M", &params);
  gm_block large = take(&bench, 16 * MIB);
  give(&bench, &large);
  large = take(&bench, 15 * MIB);
  const gm_block small = take(&bench, 4096), other = take(&bench, 100000);
  assert_true(small.address - large.address < 16 * MIB || other.address - large.address < 16 * MIB);
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 16 * MIB);
  give(&bench, &small);
  give(&bench, &other);
  give(&bench, &large);
  pool_bench_close(&bench);
}

/* Pooled memory alone is allowed: any serves. */
static void test_pooled_only_takes_any_memory(void **state) {
  (void)state;
  pool_bench bench;
  const gm_pool_params params = any_pool();
  const gm_request request = {.bytes = 4096, .flags = GM_POOLED_ONLY};
  gm_block block;
  pool_bench_open(&bench, "null", "null:capacity=64M", &params);
  const gm_block large = take(&bench, 4 * MIB);
  give(&bench, &large);
  assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_OK);
  give(&bench, &block);
  pool_bench_close(&bench);
}

/* Large requests get the pages that small blocks no longer use. */
static void test_idle_pages_of_small_blocks_serve_large_requests(void **state) {
  (void)state;
  enum { SMALL = 120 };
  pool_bench bench;
  gm_block blocks[SMALL];
  gm_pool_params params = any_pool();
  params.max_bytes = 16 * MIB;
  pool_bench_open(&bench, "null", "null:capacity=64M", &params);
  for (int i = 0; i < SMALL; i++) blocks[i] = take(&bench, 128 << 10);
  for (int i = 0; i < SMALL; i++) give(&bench, &blocks[i]);
  const gm_block large = take(&bench, 16 * MIB);
  give(&bench, &large);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small_blocks_hold_only_their_own_pages),
      cmocka_unit_test(test_a_full_pool_serves_small_requests_from_large_memory),
      cmocka_unit_test(test_pooled_only_takes_any_memory),
      cmocka_unit_test(test_idle_pages_of_small_blocks_serve_large_requests),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
