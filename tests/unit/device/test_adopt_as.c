/* A stranger's backend adopts devices, streams, points and memory as gm's own do; two of one API are told apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/lender_backend.h"
#include "support/pool_bench.h"

static gm_context *context_with(counted_services *host, const char *const *names, size_t count) {
  gm_context *ctx = NULL;
  counted_services_init(host);
  const gm_context_params params = {.struct_size = sizeof params,
                                    .services = &host->services,
                                    .backend_options = "lender:devices=2,capacity=64M;other:devices=3,capacity=1G",
                                    .backends = "cpu,null,lender,other",
                                    .ignore_environment = true};
  pool_bench_ok(gm_context_create(&params, &ctx, err));
  for (size_t i = 0; i < count; i++) {
    const gm_backend_ops ops = lender_ops(names[i]);
    pool_bench_ok(gm_backend_register(ctx, &ops, err));
  }
  return ctx;
}

static void end(gm_context *ctx, counted_services *host) {
  pool_bench_ok(gm_context_destroy(ctx, err));
  counted_services_check(host);
}

static void test_one_stranger_is_found_by_its_api(void **state) {
  (void)state;
  static const char *const names[] = {"lender"};
  counted_services host;
  gm_context *ctx = context_with(&host, names, 1);
  const lender_device native = lender_native(1);
  gm_device *device = NULL;
  pool_bench_ok(gm_device_adopt(ctx, &native.head, &device, err));
  assert_string_equal(gm_device_get_info(device)->backend, "lender");
  assert_int_equal(gm_device_get_info(device)->total_bytes, 64 << 20);
  pool_bench_ok(gm_device_close(device, err));
  end(ctx, &host);
}

static void test_two_strangers_are_told_apart_by_name(void **state) {
  (void)state;
  static const char *const names[] = {"lender", "other"};
  counted_services host;
  gm_context *ctx = context_with(&host, names, 2);
  const lender_device native = lender_native(1);
  gm_device *device = NULL;
  gm_error why = {.status = GM_OK};
  assert_int_equal(gm_device_adopt(ctx, &native.head, &device, &why), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(why.message, "gm_device_adopt_as"));
  for (size_t i = 0; i < 2; i++) {
    pool_bench_ok(gm_device_adopt_as(ctx, names[i], &native.head, &device, err));
    assert_string_equal(gm_device_get_info(device)->backend, names[i]);
    assert_int_equal(gm_device_get_info(device)->total_bytes, i ? 1 << 30 : 64 << 20);
    pool_bench_ok(gm_device_close(device, err));
  }
  end(ctx, &host);
}

static void test_wrong_names_and_structs_are_refused(void **state) {
  (void)state;
  static const char *const names[] = {"lender"};
  counted_services host;
  gm_context *ctx = context_with(&host, names, 1);
  lender_device native = lender_native(0);
  gm_device *device = NULL;
  gm_error why = {.status = GM_OK};
  assert_int_equal(gm_device_adopt_as(ctx, "nobody", &native.head, &device, &why), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_device_adopt_as(ctx, "cpu", &native.head, &device, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_device_adopt_as(ctx, "metal", &native.head, &device, &why), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(gm_device_adopt_as(ctx, NULL, &native.head, &device, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_device_adopt_as(ctx, "lender", NULL, &device, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_device_adopt_as(ctx, "lender", &native.head, NULL, &why), GM_ERR_INVALID_ARGUMENT);
  native.word = 0;
  assert_int_equal(gm_device_adopt_as(ctx, "lender", &native.head, &device, &why), GM_ERR_INVALID_ARGUMENT);
  native = lender_native(7); /* there is no such card */
  assert_int_equal(gm_device_adopt_as(ctx, "lender", &native.head, &device, &why), GM_ERR_NOT_FOUND);
  native.head.api = GM_API_NULL; /* gm's own null backend adopts nothing */
  assert_int_equal(gm_device_adopt(ctx, &native.head, &device, &why), GM_ERR_NOT_SUPPORTED);
  assert_null(device);
  end(ctx, &host);
}

static void test_streams_points_and_memory_pass_through(void **state) {
  (void)state;
  static const char *const names[] = {"other", "lender"};
  counted_services host;
  gm_context *ctx = context_with(&host, names, 2);
  const lender_device native = lender_native(0);
  const lender_stream queue = {{sizeof queue, GM_API_OTHER}, 1};
  const lender_point given = {{sizeof given, GM_API_OTHER}, 1, 1000};
  const lender_memory memory = {{sizeof memory, GM_API_OTHER}, UINT64_C(1) << 45, 4096};
  lender_memory back = {{sizeof back, GM_API_OTHER}, 0, 0};
  lender_device head = {{sizeof head, GM_API_OTHER}, 0, 0};
  gm_device *device = NULL;
  gm_stream *stream = NULL;
  gm_pool *pool = NULL;
  gm_point point;
  gm_block block;
  bool done = true;
  pool_bench_ok(gm_device_adopt_as(ctx, "lender", &native.head, &device, err));
  pool_bench_ok(gm_device_native(device, &head.head, err));
  assert_int_equal(head.word, LENDER_WORD);
  pool_bench_ok(gm_stream_adopt(device, &queue.head, &stream, err));
  pool_bench_ok(gm_stream_import_point(stream, &given.head, &point, err));
  pool_bench_ok(gm_point_done(device, &point, &done, err));
  assert_false(done);
  pool_bench_ok(gm_point_wait(device, &point, UINT64_MAX, err));
  pool_bench_ok(gm_pool_create(device, NULL, &pool, err));
  pool_bench_ok(gm_block_wrap(pool, &memory.head, &block, err));
  pool_bench_ok(gm_block_native(pool, &block, &back.head, err));
  assert_int_equal(back.address, memory.address);
  assert_int_equal(back.bytes, memory.bytes);
  assert_int_equal(gm_free(pool, &block, stream), GM_OK);
  const gm_request request = {.bytes = 1 << 20, .stream = stream};
  assert_true(gm_acquired(gm_alloc(pool, &request, &block)));
  assert_int_equal(gm_free(pool, &block, stream), GM_OK);
  pool_bench_ok(gm_stream_close(stream, err));
  pool_bench_ok(gm_pool_destroy(pool, err));
  pool_bench_ok(gm_device_close(device, err));
  end(ctx, &host);
}

static void test_selection_takes_a_stranger(void **state) {
  (void)state;
  static const char *const names[] = {"lender", "other"};
  counted_services host;
  gm_context *ctx = context_with(&host, names, 2);
  const gm_select_params params = {.struct_size = sizeof params, .prefer = "other,lender"};
  gm_selection found = {.struct_size = sizeof found};
  gm_device *device = NULL;
  pool_bench_ok(gm_select_backend_for_bytes(ctx, 512 << 20, &params, &found, err));
  assert_string_equal(found.id.backend, "other");
  assert_int_equal(found.api, GM_API_OTHER);
  pool_bench_ok(gm_device_open(ctx, &found.id, &device, err));
  pool_bench_ok(gm_device_close(device, err));
  end(ctx, &host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_stranger_is_found_by_its_api),
      cmocka_unit_test(test_two_strangers_are_told_apart_by_name),
      cmocka_unit_test(test_wrong_names_and_structs_are_refused),
      cmocka_unit_test(test_streams_points_and_memory_pass_through),
      cmocka_unit_test(test_selection_takes_a_stranger),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
