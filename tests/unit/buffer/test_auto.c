/* Objects that end by themselves where their variable ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gm/auto.h"
#include "support/pool_bench.h"

/* Leaves by the return number `way`. */
static int leave(gm_device *device, int way) {
  GM_AUTO(gm_pool) *pool = NULL;
  GM_AUTO(gm_stream) *stream = NULL;
  GM_AUTO(gm_scope) *scope = NULL;
  GM_AUTO(gm_buffer) *buffer = NULL;
  const gm_buffer_params params = {.struct_size = sizeof params, .request = {.bytes = 1000}};
  if (way == 0) return way;
  if (gm_pool_create(device, NULL, &pool, NULL) || way == 1) return way;
  if (gm_stream_create(device, &stream, NULL) || way == 2) return way;
  if (gm_scope_create(pool, &scope, NULL) || way == 3) return way;
  for (int i = 0; i < 5; i++) {
    gm_buffer *in_scope = NULL;
    if (gm_scope_buffer(scope, &params, &in_scope, NULL)) return -1;
  }
  GM_AUTO(gm_scope) *inner = NULL; /* it ends before the one around it */
  gm_block block;
  if (gm_scope_nest(scope, &inner, NULL)) return -1;
  if (gm_scope_alloc(way == 4 ? inner : scope, NULL, &params.request, &block, NULL)) return -1;
  if (way == 4) return way;
  if (gm_buffer_create(pool, &params, &buffer, NULL)) return -1;
  if (gm_buffer_lock(buffer, NULL, NULL) || gm_buffer_unlock(buffer, stream, NULL)) return -1;
  return way;
}

static void test_every_path_ends_all(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open_device(&bench, "cpu", NULL);
  for (int way = 0; way < 6; way++) assert_int_equal(leave(bench.device, way), way);
  pool_bench_ok(gm_device_close(bench.device, err)); /* BUSY if a pool or a stream were left */
  pool_bench_ok(gm_context_destroy(bench.ctx, err));
  counted_services_check(&bench.host);
}

static bool open_and_leave(const gm_context_params *params) {
  GM_AUTO(gm_context) *ctx = NULL;
  GM_AUTO(gm_device) *device = NULL;
  return gm_context_create(params, &ctx, NULL) == GM_OK && gm_device_open_index(ctx, "cpu", 0, &device, NULL) == GM_OK;
}

static void test_devices_and_contexts_end(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  const gm_context_params params = {.struct_size = sizeof params, .services = &host.services};
  assert_true(open_and_leave(&params));
  counted_services_check(&host);
}

static char told[256];

static void note_left_open(void *user, const char *what, const gm_error *why) {
  const size_t length = strlen(told);
  assert_ptr_equal(user, told);
  snprintf(told + length, sizeof told - length, "%s %s;", what, gm_status_name(why->status));
}

/* A block is out: nothing around it can end, and the context's hook is told of each. */
static gm_pool *leave_a_block(const gm_context_params *params) {
  GM_AUTO(gm_context) *ctx = NULL;
  GM_AUTO(gm_device) *device = NULL;
  GM_AUTO(gm_pool) *pool = NULL;
  gm_block block;
  const gm_request request = {.bytes = 1000};
  assert_int_equal(gm_context_create(params, &ctx, NULL), GM_OK);
  assert_int_equal(gm_device_open_index(ctx, "cpu", 0, &device, NULL), GM_OK);
  assert_int_equal(gm_pool_create(device, NULL, &pool, NULL), GM_OK);
  assert_true(gm_acquired(gm_alloc(pool, &request, &block)));
  return pool;
}

static void test_what_cannot_end_is_told(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  const gm_context_params params = {
      .struct_size = sizeof params, .services = &host.services, .left_open = note_left_open, .left_open_user = told};
  gm_pool *pool = leave_a_block(&params);
  assert_string_equal(told, "gm_pool GM_ERR_BUSY;gm_device GM_ERR_BUSY;gm_context GM_ERR_BUSY;");
  gm_device *device = gm_pool_device(pool);
  gm_context *ctx = gm_device_context(device);
  pool_bench_ok(gm_pool_destroy_force(pool, err));
  pool_bench_ok(gm_device_close(device, err));
  pool_bench_ok(gm_context_destroy(ctx, err));
  counted_services_check(&host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_path_ends_all),
      cmocka_unit_test(test_devices_and_contexts_end),
      cmocka_unit_test(test_what_cannot_end_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
