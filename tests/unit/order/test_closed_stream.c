/* A closed stream handed to pools, buffers and copies: it is known until its device closes, in release builds, too, and
 * no driver is asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gm/buffer.h"

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
  assert_null(gm_stream_device(b.closed));
  assert_int_equal(gm_stream_close(b.closed, NULL), GM_ERR_INVALID_ARGUMENT);
  bench_close(&b);
}

/* A destructor that comes after the stream's end gives its block back: the work of the stream is done. */
static void test_a_late_free_is_the_hosts(void **state) {
  (void)state;
  static const gm_strategy strategies[] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};
  for (int i = 0; i < 2; i++) {
    bench b;
    gm_pool *pool = NULL;
    gm_block block, again;
    bench_open(&b);
    const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategies[i]};
    assert_int_equal(gm_pool_create(b.device, &params, &pool, NULL), GM_OK);
    const gm_request request = {.bytes = 5000};
    assert_int_equal(gm_alloc(pool, &request, &block), GM_ACQUIRE_FRESH);
    assert_int_equal(gm_free(pool, &block, b.closed), GM_OK);
    assert_int_equal(gm_free(pool, &block, b.closed), GM_ERR_INVALID_ARGUMENT);
    assert_true(gm_alloc(pool, &request, &again) <= GM_ACQUIRE_FRESH);
    assert_true(again.address == block.address); /* at once */
    void *pointer = (void *)(uintptr_t)again.address;
    assert_int_equal(gm_free_ptr(pool, pointer, 0, b.closed), GM_OK);
    assert_int_equal(gm_pool_destroy(pool, NULL), GM_OK);
    bench_close(&b);
  }
}

/* The objects of closed streams are used again, the oldest first, and never while they are open. */
static void test_streams_come_and_go(void **state) {
  (void)state;
  enum { AGAIN = 300 };
  bench b;
  bench_open(&b);
  for (int i = 0; i < AGAIN; i++) {
    gm_stream *stream = NULL, *other = NULL;
    assert_int_equal(gm_stream_create(b.device, &stream, NULL), GM_OK);
    assert_int_equal(gm_stream_create(b.device, &other, NULL), GM_OK);
    assert_true(stream != other && gm_stream_id(stream) != gm_stream_id(other));
    assert_ptr_equal(gm_stream_device(stream), b.device);
    assert_int_equal(gm_stream_close(stream, NULL), GM_OK);
    assert_null(gm_stream_device(stream));
    assert_int_equal(gm_stream_close(other, NULL), GM_OK);
  }
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_pools_answer), cmocka_unit_test(test_copies_answer),
                                     cmocka_unit_test(test_a_late_free_is_the_hosts),
                                     cmocka_unit_test(test_streams_come_and_go)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
