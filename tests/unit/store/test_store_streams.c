/* Work still reads a value when it is released. The memory is not used again before that work is done. This is so
 * where the store, which knows of no stream, ends the value, too. On the null backend, whose time stands still. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "gm/store.h"
#include "support/order_bench.h"

/* Does the pool have memory in host order that was used before and that nobody uses any more? */
static bool there_is_idle_memory(order_bench *bench) {
  const gm_request request = {.bytes = 4096, .flags = GM_POOLED_ONLY};
  gm_block block;
  const gm_acquire answer = gm_alloc(bench->base.pool, &request, &block);
  if (answer == GM_ACQUIRE_OK) assert_int_equal(gm_free(bench->base.pool, &block, NULL), GM_OK);
  return answer == GM_ACQUIRE_OK;
}

static void put_get_work(order_bench *bench, gm_store *store, gm_value **out) {
  static const char bytes[4096] = "";
  const gm_tensor_desc desc = {.struct_size = sizeof desc, .dtype = GM_DTYPE_U8, .rank = 1, .shape = {4096}};
  pool_bench_ok(gm_store_put_tensor(store, "a", &desc, bytes, err));
  pool_bench_ok(gm_store_get(store, "a", out, err));
  work(bench, bench->b);
}

static void test_a_release_names_the_stream(void **state) {
  (void)state;
  for (int last = 0; last < 2; last++) {
    order_bench bench;
    gm_store *store = NULL;
    gm_value *value = NULL;
    order_open(&bench, GM_STREAM_FIFO, 0);
    const gm_store_params params = {.struct_size = sizeof params, .pool = bench.base.pool};
    pool_bench_ok(gm_store_create(&params, &store, err));
    put_get_work(&bench, store, &value);
    if (last) pool_bench_ok(gm_store_delete(store, "a", err)); /* else the store ends the value */
    gm_value_release(value, bench.b);
    if (!last) pool_bench_ok(gm_store_delete(store, "a", err));
    assert_false(there_is_idle_memory(&bench));
    pass_time(&bench);
    assert_true(there_is_idle_memory(&bench));
    pool_bench_ok(gm_store_destroy(store, err));
    order_close(&bench);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_release_names_the_stream)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
