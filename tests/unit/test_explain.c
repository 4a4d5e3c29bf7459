/* gm_explain judges and changes nothing. What it says of limits and sizes is in test_pool.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/pool/arena.h"
#include "gm/copy.h"
#include "support/pool_bench.h"

#define MIB (UINT64_C(1024) * 1024)

static bool follows(gm_pool *pool, const gm_stream *stream) {
  const gm__arena *arena;
  bool found = gm__order_find(&pool->order, stream) != GM__ORDER_HOST;
  for (uint32_t i = 0; (arena = gm__arena_at(pool, i)); i++) {
    found |= gm__order_find(&arena->order, stream) != GM__ORDER_HOST;
  }
  return found;
}

/* A pool follows 64 streams; to be asked about one more is no reason to follow that, and the answer is that of a
 * request on it. */
static void test_a_report_follows_no_stream(void **state) {
  (void)state;
  static const gm_strategy strategies[] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};
  for (size_t s = 0; s < 2; s++) {
    const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategies[s]};
    pool_bench bench;
    gm_stream *freer, *asker;
    gm_block block;
    gm_point point;
    pool_bench_open(&bench, "null", "null:capacity=64M,latency=100000000", &params);
    pool_bench_ok(gm_stream_create(bench.device, &freer, err));
    pool_bench_ok(gm_stream_create(bench.device, &asker, err));
    gm_request request = {.bytes = 64 * MIB};
    assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_FRESH);
    pool_bench_ok(gm_block_fill(bench.pool, &block, 0, 1, "", 1, freer, &point, err));
    gm_point_release(bench.device, &point);
    assert_int_equal(gm_free(bench.pool, &block, freer), GM_OK);
    request.stream = asker;
    gm_explanation why = {.struct_size = sizeof why};
    pool_bench_ok(gm_explain(bench.pool, &request, &why, err));
    assert_false(follows(bench.pool, asker));
    const gm_acquire answer = gm_alloc(bench.pool, &request, &block);
    assert_int_equal(answer, why.acquire);
    assert_int_equal(answer, GM_ACQUIRE_NEEDS_WAIT);
    assert_int_equal(gm_free(bench.pool, &block, asker), GM_OK);
    pool_bench_ok(gm_stream_close(asker, err));
    pool_bench_ok(gm_stream_close(freer, err));
    pool_bench_close(&bench);
  }
}

/* What is larger than the device is not served by freeing or allowing more. */
static void test_more_than_the_device_has_is_told(void **state) {
  (void)state;
  static const gm_strategy strategies[] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};
  for (size_t s = 0; s < 2; s++) {
    const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategies[s], .max_bytes = 32 * MIB};
    pool_bench bench;
    pool_bench_open(&bench, "null", "null:capacity=64M", &params);
    const uint64_t total = gm_device_get_info(bench.device)->total_bytes;
    gm_request request = {.bytes = UINT64_C(1) << 50};
    gm_explanation why = {.struct_size = sizeof why};
    assert_true(total == 64 * MIB);
    pool_bench_ok(gm_explain(bench.pool, &request, &why, err));
    assert_non_null(strstr(why.text, " The device has 64 MiB in all."));
    assert_null(strstr(why.text, "would help"));
    request.bytes = total; /* the device could, the pool's limit refuses */
    pool_bench_ok(gm_explain(bench.pool, &request, &why, err));
    assert_null(strstr(why.text, " in all."));
    assert_non_null(strstr(why.text, " more would help."));
    pool_bench_close(&bench);
  }
}

/* The table of a thread's blocks and holes is used to its end, and then the report says what a request is told. */
static void test_a_full_table_is_told(void **state) {
  (void)state;
  enum { MOST = 1024, BYTES = 100 };
  pool_bench bench;
  gm_block block;
  void *pointers[MOST] = {NULL};
  uint32_t count = 0;
  const gm_request request = {.bytes = BYTES};
  gm_explanation why = {.struct_size = sizeof why};
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  pointers[count++] = gm_malloc(bench.pool, BYTES, NULL);
  gm__arena_at(bench.pool, 0)->spans.most = MOST;
  while (count < MOST && (pointers[count] = gm_malloc(bench.pool, BYTES, NULL))) count++;
  assert_in_range(count, MOST - 10, MOST - 1);
  pool_bench_ok(gm_explain(bench.pool, &request, &why, err));
  assert_int_equal(why.acquire, GM_ACQUIRE_EXHAUSTED);
  assert_int_equal(why.status, GM_ERR_OUT_OF_HOST_MEMORY);
  assert_non_null(strstr(why.text, "This thread's part of the pool has no room for more than 1024 blocks and holes."));
  assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_EXHAUSTED);
  pool_bench_ok(gm_explain(bench.pool, &request, &why, err));
  assert_int_equal(why.last_failure.status, GM_ERR_OUT_OF_HOST_MEMORY);
  assert_non_null(strstr(why.last_failure.message, "1024 blocks and holes"));
  for (int i = 0; i < 10; i++) assert_int_equal(gm_free_ptr(bench.pool, pointers[--count], 0, NULL), GM_OK);
  pool_bench_ok(gm_explain(bench.pool, &request, &why, err));
  assert_int_equal(why.acquire, GM_ACQUIRE_OK);
  assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_OK);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  while (count) assert_int_equal(gm_free_ptr(bench.pool, pointers[--count], 0, NULL), GM_OK);
  pool_bench_close(&bench);
}

/* Whatever the size and the order of limits: a cap, what the device has free, what the driver gives at once. */
static void test_the_report_says_what_a_request_is_told(void **state) {
  (void)state;
  static const uint64_t sizes[] = {1,        3 * MIB, 5 * MIB,   7 * MIB,          9 * MIB,           17 * MIB,
                                   70 * MIB, 1 << 30, MIB * MIB, MIB * MIB * 1024, UINT64_C(1) << 63, UINT64_MAX};
  static const uint32_t aligns[] = {0, 8192, 1 << 20};
  for (uint32_t i = 0; i < 2 * 2 * 2 * 3; i++) {
    pool_bench bench;
    gm_block block, more;
    const gm_pool_params params = {.struct_size = sizeof params,
                                   .strategy = i & 1 ? GM_STRATEGY_BUCKET : GM_STRATEGY_BEST_FIT,
                                   .max_bytes = i & 2 ? 16 * MIB : 0,
                                   .no_vmm = i & 4};
    pool_bench_open(&bench, "null", "null:capacity=64M,max_alloc=8M", &params);
    const gm_request first = {.bytes = 3 * MIB};
    assert_int_equal(gm_alloc(bench.pool, &first, &block), GM_ACQUIRE_FRESH);
    assert_int_equal(gm_alloc(bench.pool, &first, &more), GM_ACQUIRE_FRESH);
    assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
      const gm_request request = {.bytes = sizes[k], .align = aligns[i / 8]};
      gm_explanation why = {.struct_size = sizeof why};
      pool_bench_ok(gm_explain(bench.pool, &request, &why, err));
      const gm_acquire answer = gm_alloc(bench.pool, &request, &block);
      if (answer != why.acquire) fail_msg("%u: %u, told %d: %s", i, (unsigned)k, answer, why.text);
      if (answer <= GM_ACQUIRE_FRESH) assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
    }
    assert_int_equal(gm_free(bench.pool, &more, NULL), GM_OK);
    pool_bench_close(&bench);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_report_follows_no_stream),
      cmocka_unit_test(test_more_than_the_device_has_is_told),
      cmocka_unit_test(test_a_full_table_is_told),
      cmocka_unit_test(test_the_report_says_what_a_request_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
