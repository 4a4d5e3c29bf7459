/* A closed stream handed to pools, buffers and copies: debug builds answer, and no driver is asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gm/buffer.h"

#ifndef NDEBUG
typedef struct bench {
  gm_context *ctx;
  gm_device *device;
  gm_stream *closed;
  gm_pool *pool;
  gm_block block;
} bench;

static void bench_open(bench *self) {
  const gm_request request = {.bytes = 5000};
  assert_int_equal(gm_context_create(NULL, &self->ctx, NULL), GM_OK);
  assert_int_equal(gm_device_open_index(self->ctx, "cpu", 0, &self->device, NULL), GM_OK);
  assert_int_equal(gm_pool_create(self->device, NULL, &self->pool, NULL), GM_OK);
  assert_true(gm_alloc(self->pool, &request, &self->block) <= GM_ACQUIRE_FRESH);
  assert_int_equal(gm_stream_create(self->device, &self->closed, NULL), GM_OK);
  assert_int_equal(gm_stream_close(self->closed, NULL), GM_OK);
}

static void bench_close(bench *self) {
  assert_int_equal(gm_free(self->pool, &self->block, NULL), GM_OK);
  assert_int_equal(gm_pool_destroy(self->pool, NULL), GM_OK);
  assert_int_equal(gm_device_close(self->device, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(self->ctx, NULL), GM_OK);
}

static void test_pools_answer(void **state) {
  (void)state;
  bench b;
  bench_open(&b);
  const gm_request request = {.bytes = 5000, .stream = b.closed};
  gm_block other;
  assert_int_equal(gm_alloc(b.pool, &request, &other), GM_ACQUIRE_INVALID);
  assert_null(gm_malloc(b.pool, 100, b.closed));
  assert_int_equal(gm_use_on(b.pool, &b.block, b.closed), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free(b.pool, &b.block, b.closed), GM_ERR_INVALID_ARGUMENT);
  assert_null(gm_stream_device(b.closed));
  bench_close(&b);
}

static void test_copies_answer(void **state) {
  (void)state;
  bench b;
  bench_open(&b);
  unsigned char bytes[16] = {0};
  void *pointer = NULL;
  gm_error err = {.status = GM_OK};
  assert_int_equal(gm_block_write(b.pool, &b.block, 0, bytes, 16, b.closed, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_read(b.pool, &b.block, 0, bytes, 16, b.closed, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_fill(b.pool, &b.block, 0, 16, bytes, 1, b.closed, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_map(b.pool, &b.block, 0, 16, GM_MAP_READ, b.closed, &pointer, &err),
                   GM_ERR_INVALID_ARGUMENT);
  gm_buffer *buffer = NULL;
  const gm_buffer_params params = {.struct_size = sizeof params, .request = {.bytes = 100}};
  assert_int_equal(gm_buffer_create(b.pool, &params, &buffer, &err), GM_OK);
  assert_int_equal(gm_buffer_write(buffer, 0, bytes, 16, b.closed, &err), GM_ERR_INVALID_ARGUMENT);
  gm_buffer_release(buffer, NULL);
  bench_close(&b);
}
#endif

int main(void) {
#ifndef NDEBUG
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_pools_answer), cmocka_unit_test(test_copies_answer)};
  return cmocka_run_group_tests(tests, NULL, NULL);
#else
  return 77; /* release builds have no object left to look at */
#endif
}
