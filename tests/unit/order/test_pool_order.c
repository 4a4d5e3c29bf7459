/* Stream order of freed blocks that are driver allocations of their own (test_pool_segment.c has the others). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gm/cleanup.h"
#include "support/order_bench.h"

static void test_a_fifo_stream_reuses_at_once_and_asks_nothing(void **state) {
  (void)state;
  order_bench bench;
  order_open(&bench, GM_STREAM_FIFO, 0);
  gm_block first = busy_block(&bench);
  gm_block second = take(&bench, bench.a, 0, GM_ACQUIRE_OK);
  assert_int_equal(first.address, second.address);
  assert_int_equal(shape.records, 0);
  assert_int_equal(pool_bench_stats(&bench.base).stream_hits, 1);
  give(&bench, &second, bench.a);
  order_close(&bench);
}

static void test_another_stream_gets_it_when_its_point_has_passed(void **state) {
  (void)state;
  order_bench bench;
  order_open(&bench, GM_STREAM_FIFO, 0);
  gm_block first = busy_block(&bench);
  gm_block other = take(&bench, bench.b, 0, GM_ACQUIRE_FRESH); /* no stream waits for another while there is memory */
  assert_int_not_equal(first.address, other.address);
  pass_time(&bench);
  gm_block again = take(&bench, bench.b, 0, GM_ACQUIRE_OK);
  assert_int_equal(first.address, again.address);
  assert_int_equal(pool_bench_stats(&bench.base).global_hits, 1);
  assert_int_equal(shape.records, 1);
  give(&bench, &other, NULL);
  give(&bench, &again, NULL);
  order_close(&bench);
}

static void test_one_point_settles_many_frees(void **state) {
  (void)state;
  order_bench bench;
  order_open(&bench, GM_STREAM_FIFO, 0);
  gm_block blocks[8];
  for (int i = 0; i < 8; i++) blocks[i] = take(&bench, bench.a, 0, GM_ACQUIRE_FRESH);
  work(&bench, bench.a);
  for (int i = 0; i < 8; i++) give(&bench, &blocks[i], bench.a);
  gm_block fresh = take(&bench, bench.b, 0, GM_ACQUIRE_FRESH);
  pass_time(&bench);
  for (int i = 0; i < 8; i++) blocks[i] = take(&bench, bench.b, 0, GM_ACQUIRE_OK);
  assert_int_equal(shape.records, 1);
  for (int i = 0; i < 8; i++) give(&bench, &blocks[i], NULL);
  give(&bench, &fresh, NULL);
  order_close(&bench);
}

static void test_when_memory_is_short_another_stream_may_wait(void **state) {
  (void)state;
  order_bench bench;
  order_open(&bench, GM_STREAM_FIFO, 4096);
  gm_block first = busy_block(&bench);
  gm_block second = take(&bench, bench.b, 0, GM_ACQUIRE_NEEDS_WAIT);
  assert_int_equal(first.address, second.address);
  gm_point point = gm_block_point(bench.base.pool, &second);
  assert_int_equal(point.stream, gm_stream_id(bench.a));
  bool done = true;
  pool_bench_ok(gm_point_done(bench.base.device, &point, &done, err));
  assert_false(done);
  give(&bench, &second, bench.b);
  assert_int_equal(pool_bench_stats(&bench.base).waits, 1);
  order_close(&bench);
}

static void test_an_inserted_wait_makes_it_usable(void **state) {
  (void)state;
  order_bench bench;
  order_open(&bench, GM_STREAM_FIFO, 4096);
  busy_block(&bench);
  gm_block second = take(&bench, bench.b, GM_INSERT_WAIT, GM_ACQUIRE_OK);
  assert_int_equal(shape.waits, 1);
  gm_point none = gm_block_point(bench.base.pool, &second);
  assert_int_equal(none.stream, 0);
  give(&bench, &second, bench.b);
  gm_block third = take(&bench, bench.b, 0, GM_ACQUIRE_OK); /* b is behind a's work already */
  assert_int_equal(shape.waits, 1);
  give(&bench, &third, NULL);
  order_close(&bench);
}

static void test_the_host_never_waits_in_silence(void **state) {
  (void)state;
  order_bench bench;
  order_open(&bench, GM_STREAM_FIFO, 4096);
  busy_block(&bench);
  take(&bench, NULL, GM_INSERT_WAIT, GM_ACQUIRE_OVER_LIMIT);
  assert_int_equal(shape.waits, 0);
  uint64_t records = shape.records;
  pool_bench_ok(gm_stream_sync(bench.a, err));
  gm_block block = take(&bench, NULL, 0, GM_ACQUIRE_OK);
  assert_int_equal(shape.records, records); /* the wait itself told the pool */
  give(&bench, &block, NULL);
  order_close(&bench);
}

static void test_further_users_must_be_done_too(void **state) {
  (void)state;
  order_bench bench;
  order_open(&bench, GM_STREAM_FIFO, 0);
  gm_block block = take(&bench, bench.a, 0, GM_ACQUIRE_FRESH);
  assert_int_equal(gm_use_on(bench.base.pool, &block, bench.b), GM_OK);
  work(&bench, bench.b);
  give(&bench, &block, bench.a);
  gm_block fresh = take(&bench, bench.a, 0, GM_ACQUIRE_FRESH);
  gm_block again = take(&bench, bench.a, GM_INSERT_WAIT, GM_ACQUIRE_FRESH);
  pass_time(&bench);
  gm_block third = take(&bench, bench.a, 0, GM_ACQUIRE_OK);
  assert_int_equal(third.address, block.address);
  give(&bench, &fresh, NULL);
  give(&bench, &again, NULL);
  give(&bench, &third, NULL);
  assert_int_equal(gm_use_on(bench.base.pool, &third, bench.b), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_use_on(bench.base.pool, NULL, bench.b), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_use_on(bench.base.pool, &third, NULL), GM_ERR_INVALID_ARGUMENT);
  order_close(&bench);
}

static void test_older_work_is_remembered_over_a_free_by_the_host(void **state) {
  (void)state;
  order_bench bench;
  order_open(&bench, GM_STREAM_FIFO, 4096);
  busy_block(&bench);
  gm_block second = take(&bench, bench.a, 0, GM_ACQUIRE_OK);
  give(&bench, &second, NULL); /* true for the second owner; the first one's work still runs */
  take(&bench, NULL, 0, GM_ACQUIRE_OVER_LIMIT);
  gm_block third = take(&bench, bench.b, 0, GM_ACQUIRE_NEEDS_WAIT);
  give(&bench, &third, bench.b);
  order_close(&bench);
}

static void test_a_stream_with_barriers_needs_one(void **state) {
  (void)state;
  order_bench bench;
  order_open(&bench, GM_STREAM_FIFO_IF_BARRIER, 0);
  busy_block(&bench);
  gm_block second = take(&bench, bench.a, 0, GM_ACQUIRE_NEEDS_BARRIER);
  assert_int_equal(shape.barriers, 0);
  give(&bench, &second, bench.a);
  gm_block third = take(&bench, bench.a, GM_INSERT_WAIT, GM_ACQUIRE_OK);
  assert_int_equal(shape.barriers, 1);
  assert_int_equal(shape.records, 1); /* one point under way answers both requests */
  give(&bench, &third, bench.a);
  order_close(&bench);
}

static void test_only_streams_with_barriers_get_one(void **state) {
  (void)state;
  order_bench bench;
  order_open(&bench, GM_STREAM_FIFO, 0);
  assert_int_equal(gm_stream_barrier(NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  pool_bench_ok(gm_stream_barrier(bench.a, err));
  assert_int_equal(shape.barriers, 0);
  order_close(&bench);
  order_open(&bench, GM_STREAM_FIFO_IF_BARRIER, 0);
  pool_bench_ok(gm_stream_barrier(bench.a, err));
  assert_int_equal(shape.barriers, 1);
  order_close(&bench);
}

/* The stream's work has ended without a wait that gm heard of. */
static void play_finished_work_on_a_stream_with_barriers(gm_strategy strategy) {
  order_bench bench;
  order_open_as(&bench, GM_STREAM_FIFO_IF_BARRIER, 0, strategy);
  gm_block block = take(&bench, bench.a, 0, GM_ACQUIRE_FRESH);
  for (int i = 0; i < 5; i++) {
    work(&bench, bench.a);
    give(&bench, &block, bench.a);
    pass_time(&bench);
    const gm_block again = take(&bench, bench.a, 0, GM_ACQUIRE_OK);
    assert_int_equal(again.address, block.address);
    block = again;
  }
  assert_int_equal(pool_bench_stats(&bench.base).waits, 0);
  give(&bench, &block, bench.a);
  order_close(&bench);
}

static void test_finished_work_on_a_stream_with_barriers_needs_none(void **state) {
  (void)state;
  play_finished_work_on_a_stream_with_barriers(GM_STRATEGY_BUCKET);
  play_finished_work_on_a_stream_with_barriers(GM_STRATEGY_BEST_FIT);
}

static void test_unfinished_work_costs_one_point_for_many_requests(void **state) {
  (void)state;
  order_bench bench;
  order_open(&bench, GM_STREAM_FIFO_IF_BARRIER, 0);
  gm_block block = busy_block(&bench);
  for (int i = 0; i < 8; i++) {
    block = take(&bench, bench.a, 0, GM_ACQUIRE_NEEDS_BARRIER);
    give(&bench, &block, bench.a);
  }
  assert_int_equal(shape.records, 1);
  order_close(&bench);
}

static void test_zeroing_is_in_order_on_streams_with_barriers(void **state) {
  (void)state;
  order_bench bench;
  order_open(&bench, GM_STREAM_FIFO_IF_BARRIER, 0);
  busy_block(&bench);
  gm_block block = take(&bench, bench.a, GM_ZERO, GM_ACQUIRE_OK);
  assert_int_equal(shape.barriers, 2); /* before the fill and behind it */
  give(&bench, &block, bench.a);
  order_close(&bench);
}

static void test_an_unordered_stream_needs_a_point_when_it_takes_a_block_again(void **state) {
  (void)state;
  order_bench bench;
  order_open(&bench, GM_STREAM_UNORDERED, 0);
  busy_block(&bench);
  assert_int_equal(shape.records, 0); /* the free needs none */
  gm_block second = take(&bench, bench.a, 0, GM_ACQUIRE_NEEDS_WAIT);
  assert_int_equal(gm_block_point(bench.base.pool, &second).stream, gm_stream_id(bench.a));
  give(&bench, &second, bench.a);
  gm_block third = take(&bench, bench.a, GM_INSERT_WAIT, GM_ACQUIRE_OK);
  assert_int_equal(shape.waits, 1);
  work(&bench, bench.a);
  give(&bench, &third, bench.a);
  pass_time(&bench);
  gm_block fourth = take(&bench, bench.a, 0, GM_ACQUIRE_OK);
  give(&bench, &fourth, NULL);
  order_close(&bench);
}

static void test_one_point_orders_many_blocks_of_an_unordered_stream(void **state) {
  (void)state;
  const gm_strategy strategies[] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};
  for (size_t s = 0; s < sizeof strategies / sizeof strategies[0]; s++) {
    order_bench bench;
    gm_block blocks[8];
    order_open_as(&bench, GM_STREAM_UNORDERED, 0, strategies[s]);
    for (int i = 0; i < 8; i++) {
      const gm_request request = {.bytes = 4096, .stream = bench.a};
      assert_true(gm_alloc(bench.base.pool, &request, &blocks[i]) <= GM_ACQUIRE_FRESH);
    }
    work(&bench, bench.a);
    for (int i = 0; i < 8; i++) give(&bench, &blocks[i], bench.a);
    assert_int_equal(shape.records, 0);
    for (int i = 0; i < 8; i++) blocks[i] = take(&bench, bench.a, GM_INSERT_WAIT, GM_ACQUIRE_OK);
    assert_int_equal(shape.records, 1);
    for (int i = 0; i < 8; i++) give(&bench, &blocks[i], NULL);
    order_close(&bench);
  }
}

static void test_closing_a_stream_settles_what_it_used(void **state) {
  (void)state;
  order_bench bench;
  order_open(&bench, GM_STREAM_FIFO, 4096);
  gm_stream *third;
  pool_bench_ok(gm_stream_create(bench.base.device, &third, err));
  gm_block block = take(&bench, third, 0, GM_ACQUIRE_FRESH);
  work(&bench, third);
  give(&bench, &block, third);
  block = take(&bench, bench.a, 0, GM_ACQUIRE_NEEDS_WAIT);
  pool_bench_ok(gm_stream_close(third, err));
  assert_int_equal(gm_block_point(bench.base.pool, &block).stream, 0); /* passed */
  give(&bench, &block, NULL);
  block = take(&bench, NULL, 0, GM_ACQUIRE_OK);
  give(&bench, &block, NULL);
  order_close(&bench);
}

static void play_a_point_of_a_stream_that_closed(gm_strategy strategy) {
  order_bench bench;
  gm_stream *third;
  order_open_as(&bench, GM_STREAM_FIFO, 0, strategy);
  shape.kind = GM_STREAM_UNORDERED;
  pool_bench_ok(gm_stream_create(bench.base.device, &third, err));
  gm_block block = take(&bench, bench.a, 0, GM_ACQUIRE_FRESH), beside = {0};
  const gm_request request = {.bytes = block.bytes, .stream = bench.a};
  gm_alloc(bench.base.pool, &request, &beside);
  for (int i = 0; i < 3; i++) work(&bench, bench.a);
  work(&bench, third);
  assert_int_equal(gm_use_on(bench.base.pool, &block, bench.a), GM_OK);
  give(&bench, &block, third); /* which has one second of work, the other three */
  gm__null_advance(bench.base.device->handle, SECOND + SECOND / 2);
  gm_pool_collect(bench.base.pool); /* looks how far the streams are */
  pool_bench_ok(gm_stream_close(third, err));
  block = take(&bench, bench.a, 0, GM_ACQUIRE_OK);
  assert_int_equal(gm_block_point(bench.base.pool, &block).stream, 0);
  give(&bench, &block, bench.a);
  give(&bench, &beside, bench.a);
  order_close(&bench);
}

static void test_a_point_goes_with_its_stream(void **state) {
  (void)state;
  play_a_point_of_a_stream_that_closed(GM_STRATEGY_BUCKET);
  play_a_point_of_a_stream_that_closed(GM_STRATEGY_BEST_FIT);
}

static void test_trim_leaves_what_is_in_use_and_destroy_waits(void **state) {
  (void)state;
  order_bench bench;
  order_open(&bench, GM_STREAM_FIFO, 0);
  busy_block(&bench);
  gm_block idle = take(&bench, NULL, 0, GM_ACQUIRE_FRESH);
  give(&bench, &idle, NULL);
  assert_int_equal(pool_bench_stats(&bench.base).reclaimable_bytes, 4096);
  assert_int_equal(gm_pool_trim(bench.base.pool, 0), 4096);
  assert_int_equal(pool_bench_stats(&bench.base).reserved_bytes, 4096);
  order_close(&bench);
}

static void test_a_full_bucket_waits_for_streams_before_it_shrinks(void **state) {
  (void)state;
  order_bench bench;
  order_open(&bench, GM_STREAM_FIFO, 0);
  gm_block blocks[20];
  for (int i = 0; i < 20; i++) blocks[i] = take(&bench, bench.a, 0, GM_ACQUIRE_FRESH);
  work(&bench, bench.a);
  for (int i = 0; i < 20; i++) give(&bench, &blocks[i], bench.a);
  assert_int_equal(pool_bench_stats(&bench.base).driver_frees, 0);
  pass_time(&bench);
  for (int i = 0; i < 8; i++) {
    gm_block block = take(&bench, bench.a, 0, GM_ACQUIRE_OK);
    give(&bench, &block, bench.a);
  }
  assert_int_equal(pool_bench_stats(&bench.base).pooled_bytes, 8 * 4096);
  order_close(&bench);
}

static void test_more_streams_than_slots(void **state) {
  (void)state;
  enum { STREAMS = 70 };
  order_bench bench;
  order_open(&bench, GM_STREAM_FIFO, 0);
  gm_stream *streams[STREAMS];
  gm_block blocks[STREAMS];
  for (int i = 0; i < STREAMS; i++) {
    pool_bench_ok(gm_stream_create(bench.base.device, &streams[i], err));
    blocks[i] = take(&bench, streams[i], 0, GM_ACQUIRE_FRESH);
    work(&bench, streams[i]);
  }
  assert_int_equal(gm_use_on(bench.base.pool, &blocks[0], streams[STREAMS - 1]), GM_OK);
  for (int i = 0; i < STREAMS; i++) give(&bench, &blocks[i], streams[i]);
  gm_block block = take(&bench, streams[STREAMS - 1], 0, GM_ACQUIRE_FRESH); /* no free has waited */
  give(&bench, &block, streams[STREAMS - 1]);
  pass_time(&bench);
  block = take(&bench, streams[STREAMS - 1], 0, GM_ACQUIRE_OK);
  give(&bench, &block, streams[STREAMS - 1]);
  for (int i = 0; i < STREAMS; i++) pool_bench_ok(gm_stream_close(streams[i], err));
  order_close(&bench);
}

static void test_streams_that_give_no_points_keep_their_blocks(void **state) {
  (void)state;
  order_bench bench;
  order_open(&bench, GM_STREAM_UNORDERED, 4096);
  shape.record_status = GM_ERR_NOT_SUPPORTED;
  busy_block(&bench);
  take(&bench, bench.b, 0, GM_ACQUIRE_OVER_LIMIT);
  take(&bench, bench.b, GM_INSERT_WAIT, GM_ACQUIRE_OVER_LIMIT);
  pool_bench_ok(gm_stream_sync(bench.a, err));
  gm_block block = take(&bench, bench.b, 0, GM_ACQUIRE_OK);
  give(&bench, &block, NULL);
  order_close(&bench);
}

static void test_on_a_lost_device_nothing_runs(void **state) {
  (void)state;
  order_bench bench;
  order_open(&bench, GM_STREAM_FIFO, 0);
  busy_block(&bench);
  shape.done_status = GM_ERR_DEVICE_LOST;
  assert_int_equal(gm_pool_trim(bench.base.pool, 0), 4096);
  order_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_fifo_stream_reuses_at_once_and_asks_nothing),
      cmocka_unit_test(test_another_stream_gets_it_when_its_point_has_passed),
      cmocka_unit_test(test_one_point_settles_many_frees),
      cmocka_unit_test(test_when_memory_is_short_another_stream_may_wait),
      cmocka_unit_test(test_an_inserted_wait_makes_it_usable),
      cmocka_unit_test(test_the_host_never_waits_in_silence),
      cmocka_unit_test(test_further_users_must_be_done_too),
      cmocka_unit_test(test_older_work_is_remembered_over_a_free_by_the_host),
      cmocka_unit_test(test_a_stream_with_barriers_needs_one),
      cmocka_unit_test(test_only_streams_with_barriers_get_one),
      cmocka_unit_test(test_finished_work_on_a_stream_with_barriers_needs_none),
      cmocka_unit_test(test_unfinished_work_costs_one_point_for_many_requests),
      cmocka_unit_test(test_zeroing_is_in_order_on_streams_with_barriers),
      cmocka_unit_test(test_an_unordered_stream_needs_a_point_when_it_takes_a_block_again),
      cmocka_unit_test(test_one_point_orders_many_blocks_of_an_unordered_stream),
      cmocka_unit_test(test_closing_a_stream_settles_what_it_used),
      cmocka_unit_test(test_a_point_goes_with_its_stream),
      cmocka_unit_test(test_trim_leaves_what_is_in_use_and_destroy_waits),
      cmocka_unit_test(test_a_full_bucket_waits_for_streams_before_it_shrinks),
      cmocka_unit_test(test_more_streams_than_slots),
      cmocka_unit_test(test_streams_that_give_no_points_keep_their_blocks),
      cmocka_unit_test(test_on_a_lost_device_nothing_runs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
