/* gm_use_on by a pointer, and on all streams of a device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "support/order_bench.h"

enum { MANY = 100 };

/* The block that comes next in host order; `address` 0: none that was used before. */
static void assert_next(order_bench *bench, uint64_t address) {
  const gm_request request = {.bytes = 4096, .flags = GM_POOLED_ONLY};
  gm_block block;
  const gm_acquire answer = gm_alloc(bench->base.pool, &request, &block);
  assert_int_equal(answer, address ? GM_ACQUIRE_OK : GM_ACQUIRE_EXHAUSTED);
  if (!address) return;
  assert_int_equal(block.address, address);
  assert_int_equal(gm_free(bench->base.pool, &block, NULL), GM_OK);
}

static void test_by_pointer(void **state) {
  (void)state;
  order_bench bench;
  order_open(&bench, GM_STREAM_FIFO, 0);
  for (int i = 0; i < 2; i++) {
    gm_pool *pool = i ? NULL : bench.base.pool; /* NULL: found in the stream's device */
    const gm_block block = take(&bench, NULL, 0, i ? GM_ACQUIRE_OK : GM_ACQUIRE_FRESH);
    work(&bench, bench.b);
    const void *inside = (const void *)(uintptr_t)(block.address + 100);
    assert_int_equal(gm_use_on_ptr(pool, inside, bench.b), GM_OK);
    give(&bench, &block, NULL);
    assert_next(&bench, 0);
    pass_time(&bench);
    assert_next(&bench, block.address);
  }
  order_close(&bench);
}

static void test_wrong_pointers(void **state) {
  (void)state;
  order_bench bench;
  order_open(&bench, GM_STREAM_FIFO, 0);
  const gm_block block = take(&bench, NULL, 0, GM_ACQUIRE_FRESH);
  const void *inside = (const void *)(uintptr_t)block.address;
  assert_int_equal(gm_use_on_ptr(bench.base.pool, inside, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_use_on_ptr(NULL, inside, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_use_on_ptr(bench.base.pool, NULL, bench.a), GM_ERR_INVALID_ARGUMENT);
  give(&bench, &block, NULL);
  assert_int_equal(gm_use_on_ptr(bench.base.pool, inside, bench.a), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_use_on_ptr(NULL, inside, bench.a), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_use_on_all(bench.base.pool, &block), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_use_on_all(bench.base.pool, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_use_on_all(NULL, &block), GM_ERR_INVALID_ARGUMENT);
  order_close(&bench);
}

/* Work of any stream holds the block back, also of more streams than a pool follows one by one. */
static void test_on_all_streams(void **state) {
  (void)state;
  order_bench bench;
  gm_stream *streams[MANY];
  order_open(&bench, GM_STREAM_FIFO, 0);
  for (int i = 0; i < MANY; i++) pool_bench_ok(gm_stream_create(bench.base.device, &streams[i], err));
  for (int i = 0; i < MANY; i += MANY - 1) { /* the first one, then the last one */
    const gm_block block = take(&bench, NULL, 0, i ? GM_ACQUIRE_OK : GM_ACQUIRE_FRESH);
    work(&bench, streams[i]);
    assert_int_equal(gm_use_on_all(bench.base.pool, &block), GM_OK);
    give(&bench, &block, NULL);
    assert_next(&bench, 0);
    pass_time(&bench);
    assert_next(&bench, block.address);
  }
  for (int i = 0; i < MANY; i++) pool_bench_ok(gm_stream_close(streams[i], err));
  order_close(&bench);
}

static void test_without_streams_nothing_is_noted(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block, again;
  const gm_request request = {.bytes = 4096};
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  assert_true(gm_acquired(gm_alloc(bench.pool, &request, &block)));
  assert_int_equal(gm_use_on_all(bench.pool, &block), GM_OK);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  assert_int_equal(gm_alloc(bench.pool, &request, &again), GM_ACQUIRE_OK);
  assert_int_equal(again.address, block.address);
  assert_int_equal(gm_free(bench.pool, &again, NULL), GM_OK);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_by_pointer),
      cmocka_unit_test(test_wrong_pointers),
      cmocka_unit_test(test_on_all_streams),
      cmocka_unit_test(test_without_streams_nothing_is_noted),
  };
  return cmocka_run_group_tests_name("use_on_more", tests, NULL, NULL);
}
