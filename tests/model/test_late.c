/* Findings of random schedules, as tests of their own: blocks of unordered streams, on the late driver. Here it does
 * nothing before somebody waits for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "model/late_driver.h"
#include "support/pool_bench.h"

enum { SEGMENT = 2 << 20 };

typedef struct late_bench {
  pool_bench base;
  late_driver *driver;
  gm_stream *unordered, *fifo;
  uint32_t unordered_slot, fifo_slot;
} late_bench;

static gm_stream *late_open_stream(late_bench *bench, gm_stream_kind kind, uint32_t *out_slot) {
  gm_stream *stream = NULL;
  bench->driver->kind = kind;
  pool_bench_ok(gm_stream_create(bench->base.device, &stream, err));
  *out_slot = bench->driver->newest;
  return stream;
}

static void late_open(late_bench *bench) {
  const gm_pool_params params = {
      .struct_size = sizeof params, .strategy = GM_STRATEGY_BEST_FIT, .no_vmm = true, .max_bytes = SEGMENT};
  const gm_context_params context = {
      .struct_size = sizeof context, .services = &bench->base.host.services, .ignore_environment = true};
  bench->driver = calloc(1, sizeof *bench->driver);
  assert_non_null(bench->driver);
  late_next = bench->driver;
  counted_services_init(&bench->base.host);
  pool_bench_ok(gm_context_create(&context, &bench->base.ctx, err));
  pool_bench_ok(gm_backend_register(bench->base.ctx, &late_ops, err));
  pool_bench_ok(gm_device_open_index(bench->base.ctx, "late", 0, &bench->base.device, err));
  pool_bench_ok(gm_pool_create(bench->base.device, &params, &bench->base.pool, err));
  bench->unordered = late_open_stream(bench, GM_STREAM_UNORDERED, &bench->unordered_slot);
  bench->fifo = late_open_stream(bench, GM_STREAM_FIFO, &bench->fifo_slot);
}

static void late_close(late_bench *bench) {
  pool_bench_ok(gm_stream_close(bench->unordered, err));
  pool_bench_ok(gm_stream_close(bench->fifo, err));
  pool_bench_close(&bench->base);
  assert_string_equal(bench->driver->fault, "");
  free(bench->driver);
}

static gm_block take(late_bench *bench, uint64_t bytes, gm_acquire expected) {
  const gm_request request = {.bytes = bytes, .stream = bench->unordered};
  gm_block block = {0};
  assert_int_equal(gm_alloc(bench->base.pool, &request, &block), expected);
  return block;
}

/* Two neighbours are freed at one time; the first one is joined with the second only when another stream has gone. */
static void test_of_two_frees_at_one_time_both_points_count(void **state) {
  (void)state;
  late_bench bench;
  late_open(&bench);
  const gm_block first = take(&bench, 256, GM_ACQUIRE_FRESH), second = take(&bench, 256, GM_ACQUIRE_OK);
  const gm_block rest = take(&bench, SEGMENT - 512, GM_ACQUIRE_OK);
  assert_int_equal(second.address, first.address + 256);
  assert_int_equal(gm_use_on(bench.base.pool, &first, bench.fifo), GM_OK);
  assert_int_equal(gm_free(bench.base.pool, &first, bench.unordered), GM_OK);
  late_kernel(bench.driver, bench.unordered_slot, LATE_WRITE, second.address, second.bytes, 1);
  assert_int_equal(gm_free(bench.base.pool, &second, bench.unordered), GM_OK);
  pool_bench_ok(gm_stream_close(bench.fifo, err));
  const gm_block both = take(&bench, 512, GM_ACQUIRE_NEEDS_WAIT);
  assert_int_equal(both.address, first.address);
  const gm_point point = gm_block_point(bench.base.pool, &both);
  assert_true(late_is_busy(bench.driver, second.address, second.bytes));
  pool_bench_ok(gm_point_wait(bench.base.device, &point, UINT64_MAX, err));
  assert_false(late_is_busy(bench.driver, second.address, second.bytes));
  assert_int_equal(gm_free(bench.base.pool, &both, NULL), GM_OK);
  assert_int_equal(gm_free(bench.base.pool, &rest, NULL), GM_OK);
  bench.fifo = late_open_stream(&bench, GM_STREAM_FIFO, &bench.fifo_slot);
  late_close(&bench);
}

/* The unordered stream is done first and leaves its point; the stream that is done last closes. */
static void test_a_hole_that_nobody_uses_keeps_no_point(void **state) {
  (void)state;
  late_bench bench;
  late_open(&bench);
  const gm_block block = take(&bench, 256, GM_ACQUIRE_FRESH);
  late_kernel(bench.driver, bench.fifo_slot, LATE_WRITE, block.address, block.bytes, 1);
  assert_int_equal(gm_use_on(bench.base.pool, &block, bench.fifo), GM_OK);
  assert_int_equal(gm_free(bench.base.pool, &block, bench.unordered), GM_OK);
  assert_int_equal(gm_pool_trim(bench.base.pool, 0), 0);
  pool_bench_ok(gm_stream_close(bench.fifo, err));
  const uint64_t reserved = pool_bench_stats(&bench.base).reserved_bytes;
  assert_int_not_equal(reserved, 0);
  assert_int_equal(gm_pool_trim(bench.base.pool, 0), reserved);
  assert_int_equal(bench.driver->used, 0);
  bench.fifo = late_open_stream(&bench, GM_STREAM_FIFO, &bench.fifo_slot);
  late_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_of_two_frees_at_one_time_both_points_count),
      cmocka_unit_test(test_a_hole_that_nobody_uses_keeps_no_point),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
