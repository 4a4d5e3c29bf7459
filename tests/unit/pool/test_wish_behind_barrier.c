/* A thread remembers a wish whose first request was answered with "a barrier first", as it does any other. "The long
 * way is shut" as in test_known_wishes.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/pool/pool.h"
#include "support/order_bench.h"

enum { BYTES = 4096 };

static gm_acquire take_fast(const order_bench *bench, const gm_request *request, gm_block *out) {
  bench->base.ctx->generation++;
  const gm_acquire answer = gm_alloc(bench->base.pool, request, out);
  bench->base.ctx->generation--;
  return answer;
}

static void test_a_wish_behind_a_barrier_is_remembered(void **state) {
  (void)state;
  order_bench bench;
  gm_block block, other;
  order_open_as(&bench, GM_STREAM_FIFO_IF_BARRIER, 0, GM_STRATEGY_BEST_FIT);
  gm_request request = {.bytes = 1 << 20, .stream = bench.a};
  assert_int_equal(gm_alloc(bench.base.pool, &request, &block), GM_ACQUIRE_FRESH);
  work(&bench, bench.a);
  give(&bench, &block, bench.a);
  request.flags = GM_ALLOW_SPANS;
  assert_int_equal(gm_alloc(bench.base.pool, &request, &block), GM_ACQUIRE_NEEDS_BARRIER);
  request = (gm_request){.bytes = BYTES};
  assert_true(gm_acquired(gm_alloc(bench.base.pool, &request, &other)));
  give(&bench, &other, NULL); /* the quick list has it */
  request.flags = GM_ALLOW_SPANS;
  assert_int_equal(take_fast(&bench, &request, &other), GM_ACQUIRE_OK);
  give(&bench, &other, NULL);
  give(&bench, &block, bench.a);
  order_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_wish_behind_a_barrier_is_remembered)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
