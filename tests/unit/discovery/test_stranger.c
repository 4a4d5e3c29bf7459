/* A registered backend is discovered, selected and filled as gm's own are: a copy of the CPU backend from a module.
 * tests/unit/opencl/test_opencl_stranger.c has a driver and adopted devices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/stranger.h"

static void test_discovered(void **state) {
  (void)state;
  static const gm_probe_level levels[] = {GM_PROBE_ISOLATED, GM_PROBE_ACTIVE};
  for (size_t i = 0; i < 2; i++) {
    const gm_backend_ops *ops = stranger_ops(GM_TEST_STRANGER);
    gm_context *ctx = stranger_context(ops, "cpu");
    stranger_is_discovered(ctx, ops, "cpu", levels[i]);
    pool_bench_ok(gm_context_destroy(ctx, err));
  }
}

static void test_selected(void **state) {
  (void)state;
  for (int isolated = 0; isolated < 2; isolated++) {
    const gm_backend_ops *ops = stranger_ops(GM_TEST_STRANGER);
    gm_context *ctx = stranger_context(ops, "cpu");
    if (isolated) (void)stranger_backend(ctx, ops->name, GM_PROBE_ISOLATED);
    stranger_is_selected(ctx, ops);
    stranger_is_refused(ctx, ops);
    pool_bench_ok(gm_context_destroy(ctx, err));
  }
}

static void test_filled_with_layers(void **state) {
  (void)state;
  const gm_backend_ops *ops = stranger_ops(GM_TEST_STRANGER);
  gm_context *ctx = stranger_context(ops, "cpu");
  gm_device *device = NULL;
  pool_bench_ok(gm_device_open_index(ctx, ops->name, 0, &device, err));
  stranger_gets_layers(device);
  pool_bench_ok(gm_device_close(device, err));
  pool_bench_ok(gm_context_destroy(ctx, err));
}

/* Memory that gm holds through a stranger's device is used by us on its twin's, too: it is one memory. */
static void test_counted_once(void **state) {
  (void)state;
  const gm_backend_ops *ops = stranger_ops(GM_TEST_STRANGER);
  gm_context *ctx = stranger_context(ops, "cpu");
  gm_device *device = NULL, *twin = NULL;
  gm_pool *pool = NULL;
  gm_block block;
  gm_memory_info before = {.struct_size = sizeof before}, after = before;
  pool_bench_ok(gm_device_open_index(ctx, ops->name, 0, &device, err));
  pool_bench_ok(gm_device_open_index(ctx, "cpu", 0, &twin, err));
  pool_bench_ok(gm_device_memory_info(twin, &before, err));
  pool_bench_ok(gm_pool_create(device, NULL, &pool, err));
  const gm_request request = {.bytes = 8 * STRANGER_MIB};
  assert_true(gm_acquired(gm_alloc(pool, &request, &block)));
  pool_bench_ok(gm_device_memory_info(twin, &after, err));
  assert_in_range(after.used_by_us_bytes - before.used_by_us_bytes, 8 * STRANGER_MIB, 64 * STRANGER_MIB);
  assert_int_equal(gm_free(pool, &block, NULL), GM_OK);
  pool_bench_ok(gm_pool_destroy(pool, err));
  pool_bench_ok(gm_device_close(twin, err));
  pool_bench_ok(gm_device_close(device, err));
  pool_bench_ok(gm_context_destroy(ctx, err));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_discovered),
      cmocka_unit_test(test_selected),
      cmocka_unit_test(test_filled_with_layers),
      cmocka_unit_test(test_counted_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
