/* gm_explain judges and changes nothing. What it says of limits and sizes is in test_pool.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/pool/arena.h"
#include "gm/copy.h"
#include "support/pool_bench.h"

#define MIB (UINT64_C(1024) * 1024)

static bool follows(gm_pool *pool, const gm_stream *stream) {
  const gm__arena *arena;
  bool found = gm__order_find(&pool->order, stream) != GM__ORDER_HOST;
  for (uint32_t i = 0; (arena = gm__arena_at(pool, i)); i++) {
    found |= gm__order_find(&arena->order, stream) != GM__ORDER_HOST;
  }
  return found;
}

/* A pool follows 64 streams; to be asked about one more is no reason to follow that, and the answer is that of a
 * request on it. */
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
    gm_explanation why = {.struct_size = sizeof why};
    pool_bench_ok(gm_explain(bench.pool, &request, &why, err));
    assert_false(follows(bench.pool, asker));
    const gm_acquire answer = gm_alloc(bench.pool, &request, &block);
    assert_int_equal(answer, why.acquire);
    assert_int_equal(answer, GM_ACQUIRE_NEEDS_WAIT);
    assert_int_equal(gm_free(bench.pool, &block, asker), GM_OK);
    pool_bench_ok(gm_stream_close(asker, err));
    pool_bench_ok(gm_stream_close(freer, err));
    pool_bench_close(&bench);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_report_follows_no_stream)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
