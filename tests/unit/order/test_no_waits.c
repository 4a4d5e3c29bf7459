/* Streams of which none can wait for another one's work, as Vulkan's queues without timeline semaphores. A pool serves
 * other memory, and says nothing is left where there is none. Nobody waits on the host for that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "support/order_bench.h"

static const gm_strategy strategies[] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};

static void open_without_waits(order_bench *bench, uint64_t max_bytes, gm_strategy strategy) {
  order_open_as(bench, GM_STREAM_FIFO, max_bytes, strategy);
  shape.wait_status = GM_ERR_NOT_SUPPORTED;
}

/* Freed on one stream with work, wanted on the other one. */
static gm_block pending_on_b(order_bench *bench) {
  const gm_request request = {.bytes = 4096, .stream = bench->b};
  gm_block block;
  assert_true(gm_acquired(gm_alloc(bench->base.pool, &request, &block)));
  work(bench, bench->b);
  give(bench, &block, bench->b);
  return block;
}

static void test_other_memory_serves(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    order_bench bench;
    gm_block other, again;
    open_without_waits(&bench, 0, strategies[i]);
    const gm_block block = pending_on_b(&bench);
    const gm_request request = {.bytes = 4096, .stream = bench.a, .flags = GM_INSERT_WAIT};
    assert_true(gm_acquired(gm_alloc(bench.base.pool, &request, &other)));
    assert_int_not_equal(other.address, block.address);
    pass_time(&bench);
    assert_true(gm_acquired(gm_alloc(bench.base.pool, &request, &again)));
    if (strategies[i] == GM_STRATEGY_BUCKET) assert_int_equal(again.address, block.address);
    give(&bench, &other, NULL);
    give(&bench, &again, NULL);
    gm_pool_trim(bench.base.pool, 0);
    assert_int_equal(pool_bench_stats(&bench.base).reserved_bytes, 0); /* all work has passed */
    order_close(&bench);
  }
}

/* The pool may take no more: the request is refused, and served when the work has passed. */
static void test_without_other_memory(void **state) {
  (void)state;
  order_bench bench;
  gm_block none;
  open_without_waits(&bench, 4096, GM_STRATEGY_BUCKET);
  const gm_block block = pending_on_b(&bench);
  const gm_request request = {.bytes = 4096, .stream = bench.a, .flags = GM_INSERT_WAIT};
  assert_false(gm_acquired(gm_alloc(bench.base.pool, &request, &none)));
  assert_true(shape.waits > 0); /* it was tried */
  pass_time(&bench);
  assert_true(gm_acquired(gm_alloc(bench.base.pool, &request, &none)));
  assert_int_equal(none.address, block.address);
  give(&bench, &none, NULL);
  order_close(&bench);
}

/* Without GM_INSERT_WAIT the caller gets the point, and may wait for it on the host. */
static void test_the_caller_waits_on_the_host(void **state) {
  (void)state;
  order_bench bench;
  gm_block block;
  open_without_waits(&bench, 4096, GM_STRATEGY_BUCKET);
  pending_on_b(&bench);
  const gm_request request = {.bytes = 4096, .stream = bench.a};
  assert_int_equal(gm_alloc(bench.base.pool, &request, &block), GM_ACQUIRE_NEEDS_WAIT);
  const gm_point point = gm_block_point(bench.base.pool, &block);
  assert_int_equal(gm_stream_wait(bench.a, &point, NULL), GM_ERR_NOT_SUPPORTED);
  pool_bench_ok(gm_point_wait(bench.base.device, &point, UINT64_MAX, err));
  give(&bench, &block, NULL);
  order_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_other_memory_serves),
      cmocka_unit_test(test_without_other_memory),
      cmocka_unit_test(test_the_caller_waits_on_the_host),
  };
  return cmocka_run_group_tests_name("no_waits", tests, NULL, NULL);
}
