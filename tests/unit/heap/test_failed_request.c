/* A request for which the driver has no new memory, while another stream's block could serve after a wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "support/order_bench.h"

enum { STRATEGIES = 2, BYTES = 16 << 20 };

static const gm_strategy strategies[STRATEGIES] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};

static gm_acquire ask(const order_bench *bench, gm_stream *stream, gm_block *out) {
  const gm_request request = {.bytes = BYTES, .stream = stream};
  return gm_alloc(bench->base.pool, &request, out);
}

/* A block of stream a, whose work still runs; then new memory fails with that status. Returns b's answer. */
static gm_acquire ask_when(gm_status memory_status, gm_strategy strategy, gm_stats *out) {
  order_bench bench;
  gm_block block;
  order_open_as(&bench, GM_STREAM_FIFO, 0, strategy);
  assert_int_equal(ask(&bench, bench.a, &block), GM_ACQUIRE_FRESH);
  work(&bench, bench.a);
  give(&bench, &block, bench.a);
  shape.memory_status = memory_status;
  const gm_acquire answer = ask(&bench, bench.b, &block);
  *out = pool_bench_stats(&bench.base);
  if (gm_acquired(answer)) give(&bench, &block, bench.b);
  order_close(&bench);
  return answer;
}

/* A wait is better than a failure, be it a shortage or not. */
static void test_another_streams_block_serves(void **state) {
  (void)state;
  static const gm_status failures[] = {GM_ERR_OUT_OF_DEVICE_MEMORY, GM_ERR_DRIVER, GM_ERR_OUT_OF_HOST_MEMORY};
  gm_stats stats;
  for (int i = 0; i < STRATEGIES; i++) {
    for (size_t j = 0; j < sizeof failures / sizeof *failures; j++) {
      assert_int_equal(ask_when(failures[j], strategies[i], &stats), GM_ACQUIRE_NEEDS_WAIT);
      assert_int_equal(stats.waits, 1);
    }
  }
}

/* No memory of a lost device is of use, and no wait there ends. */
static void test_a_lost_device_has_none(void **state) {
  (void)state;
  gm_stats stats;
  for (int i = 0; i < STRATEGIES; i++) {
    assert_int_equal(ask_when(GM_ERR_DEVICE_LOST, strategies[i], &stats), GM_ACQUIRE_FAILED);
    assert_int_equal(stats.waits, 0);
    assert_int_equal(stats.in_use_bytes, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_another_streams_block_serves),
                                     cmocka_unit_test(test_a_lost_device_has_none)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
