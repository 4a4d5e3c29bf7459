/* Stream order of freed blocks that are driver allocations of their own (test_pool_segment.c has the others), on a
 * backend of the test's own: the null backend's virtual time, streams of any kind, and counted, breakable points. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backends/null/null_backend.h"
#include "core/device/device.h"
#include "support/pool_bench.h"

#define SECOND UINT64_C(1000000000)

static struct {
  gm_stream_kind kind; /* of streams created from now on */
  uint64_t records, releases, waits, barriers;
  gm_status record_status, done_status;
} shape;

static gm_status shape_stream_create(void *device, void **out_stream, gm_stream_kind *out_kind, gm_error *err) {
  gm_status status = gm__null_backend.stream_create(device, out_stream, out_kind, err);
  *out_kind = shape.kind;
  return status;
}

static gm_status shape_point_record(void *device, void *stream, gm_backend_point *out, gm_error *err) {
  if (shape.record_status) return shape.record_status;
  shape.records++;
  return gm__null_backend.point_record(device, stream, out, err);
}

static gm_status shape_point_done(void *device, const gm_backend_point *point, bool *out, gm_error *err) {
  if (shape.done_status) return shape.done_status;
  return gm__null_backend.point_done(device, point, out, err);
}

static void shape_point_release(void *device, const gm_backend_point *point, gm_close_mode mode) {
  shape.releases++;
  gm__null_backend.point_release(device, point, mode);
}

static gm_status shape_point_wait_on(void *device, void *stream, const gm_backend_point *point, gm_error *err) {
  shape.waits++;
  return gm__null_backend.point_wait_on(device, stream, point, err);
}

static gm_status shape_stream_barrier(void *device, void *stream, gm_error *err) {
  (void)device, (void)stream, (void)err;
  shape.barriers++;
  return GM_OK;
}

static gm_status shape_fill(void *device, void *stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                            const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err) {
  shape.records += out != NULL; /* a point to release */
  return gm__null_backend.fill(device, stream, dst, offset, bytes, pattern, pattern_bytes, out, err);
}

typedef struct order_bench {
  pool_bench base;
  gm_stream *a, *b;
} order_bench;

static void order_open_as(order_bench *bench, gm_stream_kind kind, uint64_t max_bytes, gm_strategy strategy) {
  memset(&shape, 0, sizeof shape);
  shape.kind = kind;
  gm_backend_ops ops = gm__null_backend;
  ops.name = "shape";
  ops.api = GM_API_OTHER;
  ops.stream_create = shape_stream_create;
  ops.point_record = shape_point_record;
  ops.point_done = shape_point_done;
  ops.point_release = shape_point_release;
  ops.point_wait_on = shape_point_wait_on;
  ops.stream_barrier = shape_stream_barrier;
  ops.fill = shape_fill;
  pool_bench *base = &bench->base;
  counted_services_init(&base->host);
  gm_context_params context = {.struct_size = sizeof context,
                               .services = &base->host.services,
                               .backend_options = "shape:capacity=64M,latency=1000000000",
                               .ignore_environment = true};
  gm_pool_params params = {.struct_size = sizeof params, .strategy = strategy, .max_bytes = max_bytes, .checked = true};
  pool_bench_ok(gm_context_create(&context, &base->ctx, err));
  pool_bench_ok(gm_backend_register(base->ctx, &ops, err));
  pool_bench_ok(gm_config_set(base->ctx, "memory_fraction", "1", err));
  pool_bench_ok(gm_config_set(base->ctx, "min_free_bytes", "0", err));
  pool_bench_ok(gm_device_open_index(base->ctx, "shape", 0, &base->device, err));
  pool_bench_ok(gm_pool_create(base->device, &params, &base->pool, err));
  pool_bench_ok(gm_stream_create(base->device, &bench->a, err));
  pool_bench_ok(gm_stream_create(base->device, &bench->b, err));
}

static void order_open(order_bench *bench, gm_stream_kind kind, uint64_t max_bytes) {
  order_open_as(bench, kind, max_bytes, GM_STRATEGY_BUCKET);
}

static void order_close(order_bench *bench) {
  pool_bench_ok(gm_stream_close(bench->a, err));
  pool_bench_ok(gm_stream_close(bench->b, err));
  pool_bench_close(&bench->base);
  assert_int_equal(shape.records, shape.releases);
}

/* A second of virtual work on a stream. */
static void work(const order_bench *bench, const gm_stream *stream) {
  gm_memory nowhere = {.handle = 1, .bytes = 64};
  gm_backend_point point;
  assert_int_equal(
      gm__null_backend.fill(bench->base.device->handle, stream->handle, &nowhere, 0, 64, "", 1, &point, NULL), GM_OK);
}

static void pass_time(const order_bench *bench) { gm__null_advance(bench->base.device->handle, 10 * SECOND); }

static gm_block take(order_bench *bench, gm_stream *stream, uint32_t flags, gm_acquire expected) {
  gm_request request = {.bytes = 4096, .stream = stream, .flags = flags};
  gm_block block = {0};
  assert_int_equal(gm_alloc(bench->base.pool, &request, &block), expected);
  return block;
}

static void give(order_bench *bench, const gm_block *block, gm_stream *stream) {
  assert_int_equal(gm_free(bench->base.pool, block, stream), GM_OK);
}

/* A block taken and used on `a`, and freed there while the work still runs. */
static gm_block busy_block(order_bench *bench) {
  gm_block block = take(bench, bench->a, 0, GM_ACQUIRE_FRESH);
  work(bench, bench->a);
  give(bench, &block, bench->a);
  return block;
}

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
  assert_int_equal(shape.records, 0);
  give(&bench, &third, bench.a);
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
  gm_explanation why = {.struct_size = sizeof why};
  gm_alloc(bench.base.pool, &request, &beside);
  for (int i = 0; i < 3; i++) work(&bench, bench.a);
  work(&bench, third);
  assert_int_equal(gm_use_on(bench.base.pool, &block, bench.a), GM_OK);
  give(&bench, &block, third); /* which has one second of work, the other three */
  gm__null_advance(bench.base.device->handle, SECOND + SECOND / 2);
  gm_explain(bench.base.pool, &request, &why, NULL); /* looks how far the streams are */
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
  assert_int_equal(gm_use_on(bench.base.pool, &blocks[0], streams[STREAMS - 1]), GM_ERR_NOT_SUPPORTED);
  for (int i = 0; i < STREAMS; i++) give(&bench, &blocks[i], streams[i]);
  gm_block block = take(&bench, streams[STREAMS - 1], 0, GM_ACQUIRE_OK);
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
