/* zero_segments: new memory of best_fit is zeros, so that requests for zeros cost nothing until it was used; and never
 * does one get anything else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/pool/pool.h"
#include "gm/cleanup.h"
#include "gm/copy.h"
#include "support/pool_bench.h"
#include "support/random.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)

static gm_backend_ops counting; /* the device's, with a count, or a failure, of each fill */
static const gm_backend_ops *real;
static int fills;
static bool fill_fails;

static gm_status fill(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                      const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err) {
  fills++;
  if (fill_fails) return GM_ERR_DRIVER;
  return real->fill(device, stream, memory, offset, bytes, pattern, pattern_bytes, out, err);
}

static void open_with(pool_bench *bench, const char *backend, const char *options, const char *zeroes, bool no_vmm) {
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = GM_STRATEGY_BEST_FIT, .no_vmm = no_vmm};
  pool_bench_open_device(bench, backend, options);
  pool_bench_ok(gm_config_set(bench->ctx, "zero_segments", zeroes, err));
  real = bench->device->ops;
  counting = *real;
  counting.fill = fill;
  bench->device->ops = &counting;
  fills = 0;
  fill_fails = false;
  pool_bench_ok(gm_pool_create(bench->device, &params, &bench->pool, err));
}

static void close_with(pool_bench *bench) {
  bench->device->ops = real;
  pool_bench_close(bench);
}

static gm_block take(const pool_bench *bench, uint64_t bytes, uint32_t flags, gm_stream *stream) {
  const gm_request request = {.bytes = bytes, .flags = flags | GM_INSERT_WAIT, .stream = stream};
  gm_block block;
  assert_in_range(gm_alloc(bench->pool, &request, &block), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
  return block;
}

static void test_zeros_of_new_memory_cost_nothing(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    pool_bench bench;
    gm_stream *stream;
    open_with(&bench, "null", "null:capacity=64M", "true", i == 1);
    pool_bench_ok(gm_stream_create(bench.device, &stream, err));
    const gm_block first = take(&bench, 4 * KIB, 0, stream);
    const int new_memory = fills;
    assert_true(new_memory > 0);
    const gm_block second = take(&bench, 4 * KIB, GM_ZERO, stream), third = take(&bench, 4 * KIB, GM_ZERO, NULL);
    assert_int_equal(fills, new_memory); /* nobody has had it */
    assert_int_equal(gm_free(bench.pool, &second, stream), GM_OK);
    const gm_block again = take(&bench, 4 * KIB, GM_ZERO, stream);
    assert_int_equal(again.address, second.address);
    assert_int_equal(fills, new_memory + 1); /* somebody had */
    assert_int_equal(gm_free(bench.pool, &first, stream), GM_OK);
    assert_int_equal(gm_free(bench.pool, &again, NULL), GM_OK);
    assert_int_equal(gm_free(bench.pool, &third, NULL), GM_OK);
    gm_pool_clear(bench.pool);
    const int before = fills;
    const gm_block anew = take(&bench, 4 * KIB, GM_ZERO, stream);
    assert_true(fills > before); /* the pool grew again */
    assert_int_equal(gm_free(bench.pool, &anew, stream), GM_OK);
    pool_bench_ok(gm_stream_close(stream, err));
    close_with(&bench);
  }
}

static void test_without_the_key_each_request_pays(void **state) {
  (void)state;
  pool_bench bench;
  open_with(&bench, "null", "null:capacity=64M", "false", false);
  const gm_block plain = take(&bench, 4 * KIB, 0, NULL);
  assert_int_equal(fills, 0);
  const gm_block zero = take(&bench, 4 * KIB, GM_ZERO, NULL);
  assert_int_equal(fills, 1);
  assert_int_equal(gm_free(bench.pool, &plain, NULL), GM_OK);
  assert_int_equal(gm_free(bench.pool, &zero, NULL), GM_OK);
  close_with(&bench);
}

/* The driver refuses to zero new memory: it serves all the same, and requests for zeros ask again. */
static void test_a_failed_fill(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    pool_bench bench;
    open_with(&bench, "null", "null:capacity=64M", "true", i == 1);
    fill_fails = true;
    const gm_block plain = take(&bench, 4 * KIB, 0, NULL);
    fill_fails = false;
    const int before = fills;
    const gm_block zero = take(&bench, 4 * KIB, GM_ZERO, NULL);
    assert_int_equal(fills, before + 1);
    assert_int_equal(gm_free(bench.pool, &plain, NULL), GM_OK);
    assert_int_equal(gm_free(bench.pool, &zero, NULL), GM_OK);
    close_with(&bench);
  }
}

static void check_zeros(const pool_bench *bench, const gm_block *block) {
  static unsigned char bytes[64 * 1024];
  assert_true(block->bytes <= sizeof bytes);
  pool_bench_ok(gm_block_read(bench->pool, block, 0, bytes, block->bytes, NULL, NULL, err));
  for (uint64_t i = 0; i < block->bytes; i++) assert_int_equal(bytes[i], 0);
}

/* Blocks are filled with something else, cut, joined, moved between arenas' segments and given back to the driver. */
static void test_nobody_gets_anything_but_zeros(void **state) {
  (void)state;
  enum { TURNS = 4000, LIVE = 40 };
  for (int round = 0; round < 4; round++) {
    pool_bench bench;
    gm_stream *streams[3] = {NULL};
    gm_block blocks[LIVE] = {{0}};
    uint64_t random = (uint64_t)round;
    open_with(&bench, "cpu", NULL, "true", round % 2 == 1);
    pool_bench_ok(gm_stream_create(bench.device, &streams[1], err));
    pool_bench_ok(gm_stream_create(bench.device, &streams[2], err));
    for (int turn = 0; turn < TURNS; turn++) {
      gm_block *block = &blocks[test_random(&random) % LIVE];
      gm_stream *stream = streams[test_random(&random) % 3];
      if (block->bytes) {
        pool_bench_ok(gm_block_fill(bench.pool, block, 0, block->bytes, "dirt", 4, stream, NULL, err));
        assert_int_equal(gm_free(bench.pool, block, stream), GM_OK);
        block->bytes = 0;
      } else {
        const uint32_t zero = test_random(&random) % 2 ? GM_ZERO : 0;
        *block = take(&bench, test_random(&random) % (48 * KIB) + 1, zero, stream);
        if (zero && stream) pool_bench_ok(gm_stream_sync(stream, err));
        if (zero) check_zeros(&bench, block);
      }
      if (turn % 500 == 499) gm_pool_trim(bench.pool, test_random(&random) % MIB);
    }
    for (int i = 0; i < LIVE; i++) {
      if (blocks[i].bytes) assert_int_equal(gm_free(bench.pool, &blocks[i], NULL), GM_OK);
    }
    pool_bench_ok(gm_stream_close(streams[1], err));
    pool_bench_ok(gm_stream_close(streams[2], err));
    close_with(&bench);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_zeros_of_new_memory_cost_nothing),
      cmocka_unit_test(test_without_the_key_each_request_pays),
      cmocka_unit_test(test_a_failed_fill),
      cmocka_unit_test(test_nobody_gets_anything_but_zeros),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
