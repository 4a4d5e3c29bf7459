/* Pools of fixed sizes in use: streams, points, deadlines, threads, and blocks of several memories. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/device/device.h"
#include "gm/copy.h"
#include "gm/spans.h"
#include "support/causes.h"
#include "support/fixed_bench.h"

static void test_a_block_that_another_stream_freed(void **state) {
  (void)state;
  pool_bench bench;
  gm_stream *a, *b;
  gm_point point = {0};
  const uint32_t word = 7;
  pool_bench_open_device(&bench, "null", "null:capacity=64M,latency=1000000000");
  const gm_pool_params params = {
      .struct_size = sizeof params, .strategy = GM_STRATEGY_FIXED, .sizes = two_sizes, .size_count = 2};
  pool_bench_ok(gm_pool_create(bench.device, &params, &bench.pool, err));
  pool_bench_ok(gm_stream_create(bench.device, &a, err));
  pool_bench_ok(gm_stream_create(bench.device, &b, err));
  gm_block block = take(bench.pool, 4 * MIB, a, GM_ACQUIRE_OK);
  pool_bench_ok(gm_block_fill(bench.pool, &block, 0, block.bytes, &word, sizeof word, a, &point, err));
  gm_point_release(bench.device, &point);
  give(bench.pool, &block, a);
  const gm_request request = {.bytes = 4 * MIB, .stream = b};
  assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_NEEDS_WAIT); /* nothing else could serve */
  give(bench.pool, &block, b);
  block = take(bench.pool, 4 * MIB, a, GM_ACQUIRE_OK);
  give(bench.pool, &block, a);
  pool_bench_ok(gm_stream_sync(a, err));
  pool_bench_ok(gm_stream_sync(b, err));
  block = take(bench.pool, 4 * MIB, NULL, GM_ACQUIRE_OK);
  give(bench.pool, &block, NULL);
  assert_int_equal(pool_bench_stats(&bench).driver_allocs, 3);
  pool_bench_ok(gm_stream_close(a, err));
  pool_bench_ok(gm_stream_close(b, err));
  pool_bench_close(&bench);
}

static void test_a_free_at_a_point(void **state) {
  (void)state;
  pool_bench bench;
  gm_stream *stream;
  open_fixed(&bench, 0, 0);
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  for (int turn = 0; turn < 3; turn++) {
    gm_point point = {0};
    const gm_block block = take(bench.pool, 4 * MIB, stream, GM_ACQUIRE_OK);
    pool_bench_ok(gm_stream_record(stream, &point, err));
    pool_bench_ok(gm_free_at(bench.pool, &block, &point, err));
    assert_int_equal(gm_free_at(bench.pool, &block, &point, NULL), GM_ERR_INVALID_ARGUMENT); /* twice */
    gm_point_release(bench.device, &point);
    if (turn == 1) pool_bench_ok(gm_stream_sync(stream, err));
  }
  assert_int_equal(pool_bench_stats(&bench).driver_allocs, 3);
  pool_bench_ok(gm_stream_close(stream, err));
  pool_bench_close(&bench);
}

typedef struct waiter {
  gm_pool *pool;
  gm_acquire answer;
} waiter;

static void *waiter_run(void *user) {
  waiter *self = user;
  const gm_request request = {.bytes = 3 * MIB, .deadline_ns = UINT64_C(600000000000)};
  gm_block block;
  self->answer = gm_alloc(self->pool, &request, &block);
  if (gm_acquired(self->answer)) gm_free(self->pool, &block, NULL);
  return NULL;
}

static void test_a_deadline(void **state) {
  (void)state;
  pool_bench bench;
  pthread_t thread;
  open_fixed(&bench, 0, 0);
  waiter one = {.pool = bench.pool};
  const gm_block block = take(bench.pool, 4 * MIB, NULL, GM_ACQUIRE_OK);
  gm_request request = {.bytes = 2 * MIB, .deadline_ns = 1};
  refused_as(bench.pool, &request, GM_CAUSE_DEADLINE, GM_CHANGE_RAISE_CAP);
  assert_int_equal(pthread_create(&thread, NULL, waiter_run, &one), 0);
  while (!atomic_load(&bench.device->turn_count)) gm__sleep_ns(100000);
  give(bench.pool, &block, NULL);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_int_equal(one.answer, GM_ACQUIRE_OK);
  assert_int_equal(pool_bench_stats(&bench).driver_allocs, 3);
  pool_bench_close(&bench);
}

enum { FIXED_THREADS = 3, FIXED_TURNS = 200 };

/* Each thread has one block at a time, and there are three. So none is ever refused. */
static void *turns_run(void *user) {
  waiter *self = user;
  for (uint64_t turn = 0; turn < FIXED_TURNS && gm_acquired(self->answer); turn++) {
    const gm_request request = {.bytes = turn % 2 ? MIB : 1 + turn};
    gm_block block;
    self->answer = gm_alloc(self->pool, &request, &block);
    if (gm_acquired(self->answer)) gm_free(self->pool, &block, NULL);
  }
  return NULL;
}

static void test_threads(void **state) {
  (void)state;
  pool_bench bench;
  pthread_t threads[FIXED_THREADS];
  waiter all[FIXED_THREADS];
  open_fixed(&bench, 0, GM_POOL_TAKE_LARGER);
  for (int i = 0; i < FIXED_THREADS; i++) {
    all[i] = (waiter){.pool = bench.pool, .answer = GM_ACQUIRE_OK};
    assert_int_equal(pthread_create(&threads[i], NULL, turns_run, &all[i]), 0);
  }
  for (int i = 0; i < FIXED_THREADS; i++) {
    assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(all[i].answer, GM_ACQUIRE_OK);
  }
  gm_block blocks[3]; /* what threads that ended have left is there */
  for (int i = 0; i < 3; i++) blocks[i] = take(bench.pool, i < 2 ? MIB : 4 * MIB, NULL, GM_ACQUIRE_OK);
  for (int i = 0; i < 3; i++) give(bench.pool, &blocks[i], NULL);
  assert_int_equal(pool_bench_stats(&bench).driver_allocs, 3);
  pool_bench_close(&bench);
}

/* Each part is a block of a size of the list. */
static void test_several_memories(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  gm_block_span spans[GM_BLOCK_SPANS_MOST];
  uint32_t count = 0;
  open_fixed(&bench, 0, 0);
  gm_request request = {.bytes = 4 * MIB + 1, .flags = GM_ALLOW_SPANS};
  assert_true(gm_acquired(gm_alloc(bench.pool, &request, &block)));
  pool_bench_ok(gm_block_spans(bench.pool, &block, 0, GM_BLOCK_SPANS_MOST, spans, &count, err));
  assert_int_equal(count, 3);
  give(bench.pool, &block, NULL);
  request.bytes = 7 * MIB; /* more than there is */
  assert_false(gm_acquired(gm_alloc(bench.pool, &request, &block)));
  const gm_stats stats = pool_bench_stats(&bench);
  assert_int_equal(stats.driver_allocs, 3);
  assert_int_equal(stats.in_use_bytes, 0);
  assert_int_equal(stats.reserved_bytes, 6 * MIB);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_block_that_another_stream_freed),
      cmocka_unit_test(test_a_free_at_a_point),
      cmocka_unit_test(test_a_deadline),
      cmocka_unit_test(test_threads),
      cmocka_unit_test(test_several_memories),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
