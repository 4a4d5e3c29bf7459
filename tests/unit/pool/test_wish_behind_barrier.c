/* A thread remembers a wish whose first request was answered with "a barrier first", as it does any other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/arena/arena.h"
#include "core/arena/wishes.h"
#include "core/pool/pool.h"
#include "support/order_bench.h"

static bool is_known(const order_bench *bench, const gm_request *request) {
  const gm__wish wish = gm__wish_of(request);
  const gm__arena *own = gm__here_find(bench->base.pool->heap.arenas.serial);
  return own && gm__wishes_find(&own->wishes, &wish);
}

static void test_a_wish_behind_a_barrier_is_remembered(void **state) {
  (void)state;
  order_bench bench;
  gm_block block;
  order_open_as(&bench, GM_STREAM_FIFO_IF_BARRIER, 0, GM_STRATEGY_BEST_FIT);
  gm_request request = {.bytes = 1 << 20, .stream = bench.a};
  assert_int_equal(gm_alloc(bench.base.pool, &request, &block), GM_ACQUIRE_FRESH);
  work(&bench, bench.a);
  assert_int_equal(gm_free(bench.base.pool, &block, bench.a), GM_OK);
  request.flags = GM_ALLOW_SPANS;
  assert_false(is_known(&bench, &request));
  assert_int_equal(gm_alloc(bench.base.pool, &request, &block), GM_ACQUIRE_NEEDS_BARRIER);
  assert_true(is_known(&bench, &request));
  assert_int_equal(gm_free(bench.base.pool, &block, bench.a), GM_OK);
  order_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_wish_behind_a_barrier_is_remembered)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
