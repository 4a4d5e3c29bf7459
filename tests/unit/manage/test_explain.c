/* gm_explain tells what is and what was, and changes nothing. Its words on limits and sizes are in test_pool.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/arena/arena.h"
#include "core/manage/explain.h"
#include "core/pool/pool.h"
#include "gm/copy.h"
#include "support/explained.h"
#include "support/pool_bench.h"

#define MIB (UINT64_C(1024) * 1024)

static bool follows(gm_pool *pool, const gm_stream *stream) {
  const gm__arena *arena;
  bool found = gm__order_find(&pool->heap.dedicated.order, stream) != GM__ORDER_HOST;
  for (uint32_t i = 0; (arena = gm__arena_at(&pool->heap.arenas, i)); i++) {
    found |= gm__order_find(&arena->order, stream) != GM__ORDER_HOST;
  }
  return found;
}

/* A pool follows 64 streams; to be asked about one more is no reason to follow that. Nor is a wait that a request
 * will need a refusal. */
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
    assert_int_equal(explained(bench.pool, &request).status, GM_OK);
    assert_false(follows(bench.pool, asker));
    assert_int_equal(explained_alloc(bench.pool, &request, &block), GM_ACQUIRE_NEEDS_WAIT);
    assert_int_equal(gm_free(bench.pool, &block, asker), GM_OK);
    pool_bench_ok(gm_stream_close(asker, err));
    pool_bench_ok(gm_stream_close(freer, err));
    pool_bench_close(&bench);
  }
}

/* A request larger than the device is not served by freeing or allowing more. */
static void test_more_than_the_device_has_is_told(void **state) {
  (void)state;
  static const gm_strategy strategies[] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};
  for (size_t s = 0; s < 2; s++) {
    const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategies[s], .max_bytes = 32 * MIB};
    pool_bench bench;
    pool_bench_open(&bench, "null", "null:capacity=64M", &params);
    const uint64_t total = gm_device_get_info(bench.device)->total_bytes;
    gm_request request = {.bytes = UINT64_C(1) << 50};
    gm_block block;
    assert_true(total == 64 * MIB);
    assert_int_equal(explained_alloc(bench.pool, &request, &block), GM_ACQUIRE_OVER_LIMIT);
    gm_explanation why = explained(bench.pool, &request);
    assert_non_null(strstr(why.text, "more than the 67108864 that the device has in all."));
    assert_null(strstr(why.text, "free at least"));
    request.bytes = total; /* the device could, the pool's limit refuses */
    assert_int_equal(explained_alloc(bench.pool, &request, &block), GM_ACQUIRE_OVER_LIMIT);
    why = explained(bench.pool, &request);
    assert_null(strstr(why.text, " in all."));
    assert_non_null(strstr(why.text, "are 33554432 more than the 33554432 that the pool's cap, "));
    assert_non_null(strstr(why.text, ": free at least so much, or change them."));
    assert_true(why.limit_bytes == 32 * MIB);
    pool_bench_close(&bench);
  }
}

/* The table of a thread's blocks and free chunks is used to its end, and then the report says what a request is told.
 */
static void test_a_full_table_is_told(void **state) {
  (void)state;
  enum { MOST = 1024, BYTES = 100 };
  pool_bench bench;
  gm_block block;
  void *pointers[MOST] = {NULL};
  uint32_t count = 0;
  const gm_request request = {.bytes = BYTES};
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  pointers[count++] = gm_malloc(bench.pool, BYTES, NULL);
  gm__arena_at(&bench.pool->heap.arenas, 0)->chunks.most = MOST;
  while (count < MOST && (pointers[count] = gm_malloc(bench.pool, BYTES, NULL))) count++;
  assert_in_range(count, MOST - 10, MOST - 1);
  assert_int_equal(explained_alloc(bench.pool, &request, &block), GM_ACQUIRE_EXHAUSTED);
  const gm_explanation why = explained(bench.pool, &request);
  assert_int_equal(why.last_failure.status, GM_ERR_OUT_OF_HOST_MEMORY);
  assert_non_null(
      strstr(why.text, "a thread's part of the pool has no room for more than 1024 blocks and free chunks."));
  for (int i = 0; i < 10; i++) assert_int_equal(gm_free_ptr(bench.pool, pointers[--count], 0, NULL), GM_OK);
  assert_int_equal(explained_alloc(bench.pool, &request, &block), GM_ACQUIRE_OK);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  while (count) assert_int_equal(gm_free_ptr(bench.pool, pointers[--count], 0, NULL), GM_OK);
  pool_bench_close(&bench);
}

/* Whatever the size and the limit that refuses: a cap, what the device has free, what the driver gives at once. */
static void test_the_report_tells_each_refusal(void **state) {
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
      const gm_acquire answer = explained_alloc(bench.pool, &request, &block);
      if (answer <= GM_ACQUIRE_FRESH) assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
    }
    assert_int_equal(gm_free(bench.pool, &more, NULL), GM_OK);
    pool_bench_close(&bench);
  }
}

/* A refusal is told as it was, also when it would be none any more. */
static void test_a_refusal_is_told_as_it_was(void **state) {
  (void)state;
  const gm_pool_params params = {.struct_size = sizeof params, .max_bytes = 16 * MIB, .name = "p"};
  const gm_request first = {.bytes = 12 * MIB}, second = {.bytes = 8 * MIB},
                   probe = {.bytes = 4096, .flags = GM_POOLED_ONLY};
  pool_bench bench;
  gm_block block, none;
  pool_bench_open(&bench, "null", "null:capacity=64M", &params);
  assert_int_equal(explained_alloc(bench.pool, &first, &block), GM_ACQUIRE_FRESH);
  assert_int_equal(explained_alloc(bench.pool, &second, &none), GM_ACQUIRE_OVER_LIMIT);
  const gm_explanation then = explained(bench.pool, &second);
  assert_non_null(strstr(then.text, "8388608 bytes beside 12582912 in use are 4194304 more than the 16777216 that "));
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  const gm_explanation now = explained(bench.pool, &second);
  assert_int_equal(now.last_failure.status, then.last_failure.status);
  assert_string_equal(now.last_failure.op, then.last_failure.op);
  assert_string_equal(now.last_failure.message, then.last_failure.message);
  assert_true(then.in_use_bytes == 12 * MIB && now.in_use_bytes == 0);
  assert_int_equal(explained_alloc(bench.pool, &second, &block), GM_ACQUIRE_OK);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  gm_pool_trim(bench.pool, 0);
  assert_int_equal(explained_alloc(bench.pool, &probe, &none), GM_ACQUIRE_EXHAUSTED); /* told, and not counted */
  assert_int_equal(pool_bench_stats(&bench).failures, 0);
  const gm_explanation probed = explained(bench.pool, &probe), kept = explained(bench.pool, &second);
  assert_int_equal(probed.cause, GM_CAUSE_POOLED_ONLY);
  assert_string_equal(kept.last_failure.message, then.last_failure.message); /* the probe hides nothing */
  pool_bench_close(&bench);
}

/* Buffers, batches and others make a failure of their own of an answer. */
static void test_an_answer_becomes_a_failure(void **state) {
  (void)state;
  const gm_pool_params params = {.struct_size = sizeof params, .max_bytes = 16 * MIB};
  const gm_request request = {.bytes = 20 * MIB}, wrong = {.bytes = 0};
  pool_bench bench;
  gm_block none;
  gm_error failure;
  pool_bench_open(&bench, "null", "null:capacity=64M", &params);
  assert_int_equal(explained_alloc(bench.pool, &request, &none), GM_ACQUIRE_OVER_LIMIT);
  assert_int_equal(gm__explain_refusal(bench.pool, &request, GM_ACQUIRE_OVER_LIMIT, "call", &failure),
                   GM_ERR_OVER_LIMIT);
  assert_string_equal(failure.op, "call");
  assert_non_null(
      strstr(failure.message, "last refused 20 MiB: gm_alloc: 20971520 bytes beside 0 in use are 4194304 "));
  /* The pool's last failure is of another answer: another thread's request failed since. */
  assert_int_equal(gm__explain_refusal(bench.pool, &request, GM_ACQUIRE_EXHAUSTED, "call", &failure),
                   GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_int_equal(gm__explain_refusal(bench.pool, &request, GM_ACQUIRE_FAILED, "call", &failure), GM_ERR_DRIVER);
  assert_int_equal(gm__explain_refusal(bench.pool, &wrong, GM_ACQUIRE_INVALID, "call", &failure),
                   GM_ERR_INVALID_ARGUMENT);
  assert_string_equal(failure.message, "gm_alloc: `bytes` is 0");
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_report_follows_no_stream),  cmocka_unit_test(test_more_than_the_device_has_is_told),
      cmocka_unit_test(test_a_full_table_is_told),        cmocka_unit_test(test_a_refusal_is_told_as_it_was),
      cmocka_unit_test(test_an_answer_becomes_a_failure), cmocka_unit_test(test_the_report_tells_each_refusal),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
