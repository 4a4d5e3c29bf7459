/* Objects that are used after their end: in debug builds an answer, in release builds the caller's bug. Kinds are told
 * apart, and only so many dead objects are remembered. (Devices and streams: test_device.c.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/context/object.h"
#include "gm/buffer.h"
#include "gm/tracker.h"
#include "support/pool_bench.h"

static void test_kinds_are_told_apart(void **state) {
  (void)state;
  gm_context *ctx = NULL;
  assert_int_equal(gm_context_create(NULL, &ctx, NULL), GM_OK);
  gm__object *object = gm__object_new(ctx, GM__KIND_BUFFER, 100);
  assert_non_null(object);
  assert_true(gm__object_is(object, GM__KIND_BUFFER));
#ifndef NDEBUG
  assert_false(gm__object_is(object, GM__KIND_POOL));
#endif
  gm__object_end(ctx, object);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

#ifndef NDEBUG
static void test_use_after_destroy_is_answered(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "cpu", NULL, NULL);
  gm_pool *pool = NULL;
  gm_block block;
  gm_request request = {.bytes = 100};
  gm_stats stats = {.struct_size = sizeof stats};
  pool_bench_ok(gm_pool_create(bench.device, NULL, &pool, err));
  pool_bench_ok(gm_pool_destroy(pool, err));
  assert_int_equal(gm_alloc(pool, &request, &block), GM_ACQUIRE_INVALID);
  assert_int_equal(gm_free(pool, &block, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_destroy(pool, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_trim(pool, 0), 0);
  assert_int_equal(gm_pool_set_max_bytes(pool, 1, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_null(gm_malloc(pool, 1, NULL));
  gm_pool_stats(pool, &stats);
  assert_null(gm_pool_device(pool));
  assert_string_equal(gm_pool_name(pool), "");
  for (int i = 0; i < 3000; i++) { /* more than the context remembers */
    pool_bench_ok(gm_pool_create(bench.device, NULL, &pool, err));
    pool_bench_ok(gm_pool_destroy(pool, err));
  }
  assert_int_equal(gm_alloc(pool, &request, &block), GM_ACQUIRE_INVALID);
  pool_bench_close(&bench);
}

static void test_buffers_and_trackers(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "cpu", NULL, NULL);
  gm_buffer *buffer = NULL;
  gm_tracker *tracker = NULL;
  gm_block block;
  gm_buffer_params params = {.struct_size = sizeof params, .request = {.bytes = 100}};
  pool_bench_ok(gm_buffer_create(bench.pool, &params, &buffer, err));
  gm_buffer_release(buffer, NULL);
  assert_int_equal(gm_buffer_block(buffer, &block, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_buffer_bytes(buffer), 0);
  gm_buffer_retain(buffer);
  gm_buffer_release(buffer, NULL);
  pool_bench_ok(gm_tracker_create(gm_device_context(bench.device), &tracker, err));
  gm_tracker_destroy(tracker);
  gm_tracker_destroy(tracker);
  assert_int_equal(gm_tracker_count(tracker), 0);
  assert_int_equal(gm_tracker_untrack(tracker, 1), GM_ERR_INVALID_ARGUMENT);
  pool_bench_close(&bench);
}
#endif

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_kinds_are_told_apart),
#ifndef NDEBUG
      cmocka_unit_test(test_use_after_destroy_is_answered),
      cmocka_unit_test(test_buffers_and_trackers),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
