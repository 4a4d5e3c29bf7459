/* Sizes, alignments and counts that a hostile or broken caller asks for. They are served or refused, on every kind of
 * pool, and the pool is as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gm/batch.h"
#include "gm/cleanup.h"
#include "gm/native_cpu.h"
#include "gm/quota.h"
#include "gm/warm_up.h"
#include "support/explained.h"
#include "support/pool_bench.h"

#define TOP (UINT64_C(1) << 63)

static const uint64_t huge[] = {TOP - 1, TOP, TOP + 1, UINT64_MAX - 4096, UINT64_MAX - 1, UINT64_MAX};
enum { HUGE_SIZES = sizeof huge / sizeof *huge };

static const gm_pool_params kinds[] = {
    {.struct_size = sizeof(gm_pool_params), .strategy = GM_STRATEGY_BUCKET},
    {.struct_size = sizeof(gm_pool_params), .strategy = GM_STRATEGY_BEST_FIT},
    {.struct_size = sizeof(gm_pool_params), .strategy = GM_STRATEGY_BEST_FIT, .no_vmm = true},
    {.struct_size = sizeof(gm_pool_params), .strategy = GM_STRATEGY_BUCKET, .track = true, .red_zone_bytes = 64},
    {.struct_size = sizeof(gm_pool_params), .strategy = GM_STRATEGY_BEST_FIT, .debug = GM_DEBUG_CHECK_FREED},
    {.struct_size = sizeof(gm_pool_params), .strategy = GM_STRATEGY_BEST_FIT, .max_bytes = UINT64_MAX},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* The refusal is a limit or a lack, never a crash, and the explanation tells it. */
static void refuse(pool_bench *bench, gm_request request) {
  gm_block block, before;
  memset(&block, 0x5a, sizeof block);
  before = block;
  const gm_acquire answer = explained_alloc(bench->pool, &request, &block);
  assert_in_range(answer, GM_ACQUIRE_EXHAUSTED, GM_ACQUIRE_OVER_LIMIT);
  assert_memory_equal(&block, &before, sizeof block);
}

static void ask_for_all(pool_bench *bench) {
  static const uint32_t flags[] = {0, GM_ZERO, GM_INSERT_WAIT, GM_POOLED_ONLY};
  gm_block none;
  for (size_t i = 0; i < HUGE_SIZES; i++) {
    for (size_t f = 0; f < sizeof flags / sizeof *flags; f++) {
      refuse(bench, (gm_request){.bytes = huge[i], .flags = flags[f], .tag = 3});
      refuse(bench, (gm_request){.bytes = huge[i], .align = UINT32_C(1) << 31, .flags = flags[f]});
    }
    assert_null(gm_malloc(bench->pool, huge[i], NULL));
    const gm_request two[] = {{.bytes = 1}, {.bytes = huge[i]}};
    for (uint32_t grouped = 0; grouped <= GM_BATCH_GROUPED; grouped++) {
      const gm_batch_params batch = {.struct_size = sizeof batch, .flags = grouped, .requests = two, .count = 2};
      gm_part parts[2];
      assert_int_not_equal(gm_alloc_batch(bench->pool, &batch, parts, NULL, NULL), GM_OK);
    }
    const gm_warm_up list = {huge[i], huge[i]};
    assert_int_not_equal(gm_pool_warm_up(bench->pool, &list, 1, NULL, NULL, NULL), GM_OK);
  }
  assert_int_equal(gm_alloc(bench->pool, &(gm_request){.bytes = 0}, &none), GM_ACQUIRE_INVALID);
  assert_null(gm_malloc(bench->pool, 0, NULL));
}

static void take_one_byte(pool_bench *bench) {
  const gm_request one = {.bytes = 1};
  gm_block block;
  assert_in_range(gm_alloc(bench->pool, &one, &block), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
  assert_int_not_equal(block.bytes, 0);
  assert_int_equal(gm_free_ptr(bench->pool, (void *)(uintptr_t)block.address, UINT64_MAX, NULL),
                   GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free_ptr(bench->pool, (void *)(uintptr_t)block.address, 1, NULL), GM_OK);
}

static void play(const char *backend, const gm_pool_params *params) {
  pool_bench bench;
  pool_bench_open(&bench, backend, strcmp(backend, "null") == 0 ? "null:capacity=64M" : NULL, params);
  take_one_byte(&bench);
  const gm_stats before = pool_bench_stats(&bench);
  ask_for_all(&bench);
  pool_bench_ok(gm_pool_set_quota(bench.pool, 1, 1000, GM_QUOTA_BORROW, 0, err)); /* the long way */
  ask_for_all(&bench);
  const gm_stats after = pool_bench_stats(&bench);
  assert_true(after.in_use_bytes <= before.in_use_bytes); /* less where a block was held back meanwhile */
  assert_true(after.requested_bytes <= before.requested_bytes);
  assert_true(after.active <= before.active);
  gm_quota quota = {.struct_size = sizeof quota};
  pool_bench_ok(gm_pool_quota(bench.pool, 3, &quota, err));
  assert_int_equal(quota.used_bytes, 0);
  take_one_byte(&bench);
  pool_bench_close(&bench);
}

static void test_sizes_on_every_kind_of_pool(void **state) {
  (void)state;
  for (size_t i = 0; i < KINDS; i++) {
    if (!kinds[i].debug && !kinds[i].red_zone_bytes) play("null", &kinds[i]);
    play("cpu", &kinds[i]);
  }
}

static void test_bounds_of_every_size(void **state) {
  (void)state;
  for (size_t i = 0; i < KINDS; i++) {
    pool_bench bench;
    pool_bench_open(&bench, "cpu", NULL, &kinds[i]);
    for (size_t k = 0; k < HUGE_SIZES; k++) {
      pool_bench_ok(gm_pool_set_max_bytes(bench.pool, huge[k], err));
      take_one_byte(&bench);
      pool_bench_ok(gm_pool_cleanup(bench.pool, 1, false, NULL, err));
      gm_pool_shrink(bench.pool, huge[k]);
      assert_int_equal(gm_pool_trim(bench.pool, huge[k]), 0);
    }
    gm_pool_clear(bench.pool);
    pool_bench_close(&bench);
  }
}

static void test_foreign_memory_of_every_size(void **state) {
  (void)state;
  pool_bench bench;
  unsigned char bytes[256];
  gm_block block;
  gm_error why;
  pool_bench_open(&bench, "cpu", NULL, NULL);
  gm_cpu_memory native = {.head = {sizeof native, GM_API_CPU}, .pointer = bytes, .bytes = 0};
  assert_int_equal(gm_block_wrap(bench.pool, &native.head, &block, &why), GM_ERR_INVALID_ARGUMENT);
  native.bytes = UINT64_MAX;
  assert_int_not_equal(gm_block_wrap(bench.pool, &native.head, &block, &why), GM_OK);
  assert_int_equal(gm_pool_record_allocation(bench.pool, INT64_MIN, &why), GM_ERR_INVALID_ARGUMENT);
  pool_bench_ok(gm_pool_record_allocation(bench.pool, INT64_MAX, err));
  pool_bench_ok(gm_pool_record_allocation(bench.pool, INT64_MAX, err));
  assert_int_equal(gm_pool_record_allocation(bench.pool, INT64_MAX, &why), GM_ERR_OVER_LIMIT);
  assert_string_equal(why.op, "gm_pool_record_allocation");
  native.bytes = sizeof bytes;
  assert_int_equal(gm_block_wrap(bench.pool, &native.head, &block, &why), GM_ERR_OVER_LIMIT);
  assert_string_equal(why.op, "gm_block_wrap");
  assert_int_equal(gm_alloc(bench.pool, &(gm_request){.bytes = sizeof bytes}, &block), GM_ACQUIRE_OVER_LIMIT);
  pool_bench_ok(gm_pool_record_allocation(bench.pool, -INT64_MAX, err));
  pool_bench_ok(gm_pool_record_allocation(bench.pool, -INT64_MAX, err));
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 0);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sizes_on_every_kind_of_pool),
      cmocka_unit_test(test_bounds_of_every_size),
      cmocka_unit_test(test_foreign_memory_of_every_size),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
