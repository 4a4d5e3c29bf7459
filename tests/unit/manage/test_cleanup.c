/* Giving back what a pool keeps: by threshold, to a target, all; collecting and joining; all pools. */
#include "gm/cleanup.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/host_upstream.h"
#include "support/pool_bench.h"

#define MIB (UINT64_C(1024) * 1024)

static const gm_strategy strategies[] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};

/* A pool with a cap of 64 MiB that keeps `kept` blocks of 4 MiB and has handed out one. */
static gm_block open_with(pool_bench *bench, gm_strategy strategy, int kept) {
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategy, .max_bytes = 64 * MIB};
  const gm_request request = {.bytes = 4 * MIB};
  gm_block blocks[16], held;
  pool_bench_open(bench, "null", "null:capacity=1G", &params);
  pool_bench_ok(gm_config_set(bench->ctx, "segment_size", "auto", err));
  assert_in_range(gm_alloc(bench->pool, &request, &held), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
  for (int i = 0; i < kept; i++) {
    assert_in_range(gm_alloc(bench->pool, &request, &blocks[i]), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
  }
  for (int i = 0; i < kept; i++) assert_int_equal(gm_free(bench->pool, &blocks[i], NULL), GM_OK);
  assert_int_equal(pool_bench_stats(bench).reserved_bytes, (uint64_t)(kept + 1) * 4 * MIB);
  return held;
}

static void close_with(pool_bench *bench, const gm_block *held) {
  assert_int_equal(gm_free(bench->pool, held, NULL), GM_OK);
  pool_bench_close(bench);
}

static void test_cleanup_by_threshold(void **state) {
  (void)state;
  for (size_t s = 0; s < 2; s++) {
    pool_bench bench;
    uint64_t bytes = 1;
    gm_block held = open_with(&bench, strategies[s], 7); /* 32 of 64 MiB */
    pool_bench_ok(gm_pool_cleanup(bench.pool, GM_CLEANUP_THRESHOLD_CONFIG, false, &bytes, err));
    assert_int_equal(bytes, 0);
    pool_bench_ok(gm_pool_cleanup(bench.pool, 0.5, false, &bytes, err));
    assert_int_equal(bytes, 0);
    pool_bench_ok(gm_pool_cleanup(bench.pool, 0.25, false, &bytes, err));
    assert_int_equal(bytes, 16 * MIB);
    pool_bench_ok(gm_config_set(bench.ctx, "cleanup.threshold", "0.125", err));
    pool_bench_ok(gm_pool_cleanup(bench.pool, GM_CLEANUP_THRESHOLD_CONFIG, false, &bytes, err));
    assert_int_equal(bytes, 8 * MIB);
    pool_bench_ok(gm_pool_cleanup(bench.pool, 1, true, NULL, err));
    assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 4 * MIB);
    assert_int_equal(pool_bench_stats(&bench).active, 1);
    close_with(&bench, &held);
  }
}

/* All of nearly 2^64 bytes is no small number. */
static void test_all_of_the_largest_cap_gives_nothing_back(void **state) {
  (void)state;
  const gm_pool_params params = {.struct_size = sizeof params, .upstream = &host_upstream};
  const gm_request request = {.bytes = MIB};
  pool_bench bench;
  gm_block block;
  uint64_t bytes = 1;
  pool_bench_open(&bench, "cpu", NULL, &params);
  pool_bench_ok(gm_pool_set_max_bytes(bench.pool, GM_NO_BYTES - 1, err));
  assert_in_range(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  pool_bench_ok(gm_pool_cleanup(bench.pool, 1, false, &bytes, err));
  assert_int_equal(bytes, 0);
  pool_bench_close(&bench);
}

static void test_shrink_to_a_target(void **state) {
  (void)state;
  for (size_t s = 0; s < 2; s++) {
    pool_bench bench;
    gm_block held = open_with(&bench, strategies[s], 7);
    assert_int_equal(gm_pool_shrink(bench.pool, 32 * MIB), 0);
    assert_int_equal(gm_pool_shrink(bench.pool, 20 * MIB), 12 * MIB);
    assert_int_equal(gm_pool_shrink(bench.pool, 0), 16 * MIB); /* what is out stays */
    assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 4 * MIB);
    close_with(&bench, &held);
  }
}

static void test_clear_gives_all_back(void **state) {
  (void)state;
  for (size_t s = 0; s < 2; s++) {
    pool_bench bench;
    gm_block held = open_with(&bench, strategies[s], 3);
    assert_int_equal(gm_pool_clear(bench.pool), 12 * MIB);
    assert_int_equal(gm_pool_clear(bench.pool), 0);
    close_with(&bench, &held);
  }
}

static void test_collect_takes_what_streams_are_done_with(void **state) {
  (void)state;
  const gm_request request = {.bytes = 4 * MIB};
  for (size_t s = 0; s < 2; s++) {
    pool_bench bench;
    gm_stream *stream;
    gm_block block, held = open_with(&bench, strategies[s], 0);
    pool_bench_ok(gm_stream_create(bench.device, &stream, err));
    gm_request on_stream = request;
    on_stream.stream = stream;
    assert_in_range(gm_alloc(bench.pool, &on_stream, &block), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
    assert_int_equal(gm_free(bench.pool, &block, stream), GM_OK);
    assert_int_equal(gm_pool_collect(bench.pool), 4 * MIB);
    assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 8 * MIB); /* nothing went back */
    pool_bench_ok(gm_stream_close(stream, err));
    close_with(&bench, &held);
  }
}

/* Small holes of a segment, some of them in quick lists, become one that a large request fits into. */
static void test_coalesce_joins_holes(void **state) {
  (void)state;
  enum { MANY = 64 };
  pool_bench bench;
  gm_block blocks[MANY];
  const gm_request small = {.bytes = 32 * 1024};
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = GM_STRATEGY_BEST_FIT};
  pool_bench_open(&bench, "null", "null:capacity=64M", &params);
  for (int i = 0; i < MANY; i++) {
    assert_in_range(gm_alloc(bench.pool, &small, &blocks[i]), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
  }
  for (int i = 0; i < MANY; i++) assert_int_equal(gm_free(bench.pool, &blocks[i], NULL), GM_OK);
  assert_int_equal(gm_pool_coalesce(bench.pool, false), 2 * MIB);
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 2 * MIB);
  gm_explanation why = {.struct_size = sizeof why};
  const gm_request large = {.bytes = 2 * MIB};
  pool_bench_ok(gm_explain(bench.pool, &large, &why, err));
  assert_int_equal(why.largest_pooled_bytes, 2 * MIB);
  assert_int_equal(gm_pool_coalesce(bench.pool, true), 2 * MIB);
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 0);
  pool_bench_close(&bench);
}

/* Every pool of a device, then of the context. A pool that is to keep its memory keeps it. */
static void test_an_emergency(void **state) {
  (void)state;
  const gm_pool_params keeps = {.struct_size = sizeof keeps, .flags = GM_POOL_NO_TRIM};
  const gm_request request = {.bytes = 4 * MIB, .flags = GM_DEDICATED};
  pool_bench bench;
  gm_device *other;
  gm_pool *pools[3];
  gm_block block;
  uint64_t bytes = 1;
  gm_block held = open_with(&bench, GM_STRATEGY_BUCKET, 7);
  pool_bench_ok(gm_device_open_index(bench.ctx, "cpu", 0, &other, err));
  pool_bench_ok(gm_pool_create(bench.device, NULL, &pools[0], err));
  pool_bench_ok(gm_pool_create(bench.device, &keeps, &pools[1], err));
  pool_bench_ok(gm_pool_create(other, NULL, &pools[2], err));
  for (int i = 0; i < 3; i++) {
    assert_in_range(gm_alloc(pools[i], &request, &block), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
    assert_int_equal(gm_free(pools[i], &block, NULL), GM_OK);
  }
  pool_bench_ok(gm_device_cleanup(bench.device, &bytes, err));
  assert_int_equal(bytes, 28 * MIB + 4 * MIB);
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 4 * MIB); /* the held block */
  pool_bench_ok(gm_device_cleanup(bench.device, &bytes, err));
  assert_int_equal(bytes, 0);
  pool_bench_ok(gm_context_cleanup(bench.ctx, &bytes, err));
  assert_int_equal(bytes, 4 * MIB);
  pool_bench_ok(gm_context_cleanup(bench.ctx, NULL, err));
  gm_stats kept = {.struct_size = sizeof kept};
  assert_int_equal(gm_pool_stats(pools[1], &kept), GM_OK);
  assert_int_equal(kept.reserved_bytes, 4 * MIB);
  for (int i = 0; i < 3; i++) pool_bench_ok(gm_pool_destroy(pools[i], err));
  pool_bench_ok(gm_device_close(other, err));
  close_with(&bench, &held);
}

static void *make_and_destroy_pools(void *user) {
  pool_bench *bench = user;
  const gm_request request = {.bytes = MIB};
  gm_status status = GM_OK;
  for (int i = 0; i < 40 && !status; i++) {
    gm_pool *pool;
    gm_block block;
    status = gm_pool_create(bench->device, NULL, &pool, NULL);
    if (status) break;
    if (gm_alloc(pool, &request, &block) <= GM_ACQUIRE_FRESH) gm_free(pool, &block, NULL);
    status = gm_pool_destroy(pool, NULL);
  }
  return status ? NULL : bench;
}

static void test_an_emergency_while_pools_come_and_go(void **state) {
  (void)state;
  pool_bench bench;
  pthread_t threads[2];
  void *answer;
  pool_bench_open(&bench, "null", "null:capacity=1G", NULL);
  for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, make_and_destroy_pools, &bench), 0);
  for (int i = 0; i < 200; i++) pool_bench_ok(gm_context_cleanup(bench.ctx, NULL, err));
  for (int i = 0; i < 2; i++) {
    pthread_join(threads[i], &answer);
    assert_ptr_equal(answer, &bench);
  }
  pool_bench_close(&bench);
}

static void test_bad_arguments(void **state) {
  (void)state;
  pool_bench bench;
  gm_block held = open_with(&bench, GM_STRATEGY_BUCKET, 1);
  static const double bad[] = {-0.5, 1.1, -2, 0.0 / 0.0};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(gm_pool_cleanup(bench.pool, bad[i], true, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  }
  assert_int_equal(gm_pool_cleanup(NULL, 0.5, true, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_clear(NULL) + gm_pool_shrink(NULL, 0) + gm_pool_collect(NULL), 0);
  assert_int_equal(gm_pool_coalesce(NULL, true), 0);
  assert_int_equal(gm_device_cleanup(NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_context_cleanup(NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  close_with(&bench, &held);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cleanup_by_threshold),
      cmocka_unit_test(test_shrink_to_a_target),
      cmocka_unit_test(test_clear_gives_all_back),
      cmocka_unit_test(test_collect_takes_what_streams_are_done_with),
      cmocka_unit_test(test_coalesce_joins_holes),
      cmocka_unit_test(test_an_emergency),
      cmocka_unit_test(test_an_emergency_while_pools_come_and_go),
      cmocka_unit_test(test_bad_arguments),
      cmocka_unit_test(test_all_of_the_largest_cap_gives_nothing_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
