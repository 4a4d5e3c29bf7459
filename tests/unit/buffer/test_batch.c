/* Batches: many sizes at once, all or nothing, grouped, with contents. */
#include "gm/batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/great_many.h"
#include "support/pool_bench.h"

#define MIB (UINT64_C(1024) * 1024)

enum { COUNT = 5 };

static const gm_strategy strategies[] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};

static void open_with(pool_bench *bench, gm_strategy strategy, const char *backend, const char *options) {
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategy, .checked = true};
  pool_bench_open(bench, backend, options, &params);
}

static gm_batch_params batch_of(const gm_request *requests, size_t count, uint32_t flags) {
  return (gm_batch_params){
      .struct_size = sizeof(gm_batch_params), .flags = flags, .requests = requests, .count = count};
}

static void test_many_sizes_at_once(void **state) {
  (void)state;
  static const gm_request requests[COUNT] = {
      {.bytes = 1}, {.bytes = 5000}, {.bytes = MIB}, {.bytes = 7, .align = 4096}, {.bytes = 300}};
  const gm_batch_params params = batch_of(requests, COUNT, 0);
  for (size_t s = 0; s < 2; s++) {
    pool_bench bench;
    gm_part parts[COUNT];
    size_t failed = 77;
    open_with(&bench, strategies[s], "null", "null:capacity=64M");
    pool_bench_ok(gm_alloc_batch(bench.pool, &params, parts, &failed, err));
    assert_int_equal(failed, 77); /* untouched */
    assert_int_equal(pool_bench_stats(&bench).active, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
      assert_int_equal(parts[i].offset, 0);
      assert_int_equal(parts[i].bytes, requests[i].bytes);
      assert_true(parts[i].block.bytes >= requests[i].bytes);
    }
    assert_int_equal(parts[3].block.address % 4096, 0);
    pool_bench_ok(gm_free_batch(bench.pool, parts, COUNT, NULL, err));
    assert_int_equal(pool_bench_stats(&bench).active, 0);
    assert_int_equal(gm_free_batch(bench.pool, parts, COUNT, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
    pool_bench_close(&bench);
  }
}

static void test_a_group_is_one_block(void **state) {
  (void)state;
  static const gm_request requests[COUNT] = {
      {.bytes = 1}, {.bytes = 5000}, {.bytes = MIB}, {.bytes = 7, .align = 8192}, {.bytes = 300}};
  const gm_batch_params params = batch_of(requests, COUNT, GM_BATCH_GROUPED);
  for (size_t s = 0; s < 2; s++) {
    pool_bench bench;
    gm_part parts[COUNT];
    open_with(&bench, strategies[s], "null", "null:capacity=64M");
    pool_bench_ok(gm_alloc_batch(bench.pool, &params, parts, NULL, err));
    assert_int_equal(pool_bench_stats(&bench).active, 1);
    for (size_t i = 0; i < COUNT; i++) {
      assert_int_equal(parts[i].block.address, parts[0].block.address);
      assert_int_equal(parts[i].bytes, requests[i].bytes);
      assert_int_equal((parts[i].block.address + parts[i].offset) % (i == 3 ? 8192 : 256), 0);
      if (i) assert_true(parts[i].offset >= parts[i - 1].offset + parts[i - 1].bytes);
      assert_true(parts[i].offset + parts[i].bytes <= parts[0].block.bytes);
    }
    pool_bench_ok(gm_free_batch(bench.pool, parts, COUNT, NULL, err));
    assert_int_equal(pool_bench_stats(&bench).active, 0);
    pool_bench_close(&bench);
  }
}

/* Parts of a group are next to each other and differ; the same part again is a free too many. */
static void test_a_part_that_comes_twice_is_refused(void **state) {
  (void)state;
  static const gm_request requests[2] = {{.bytes = 5000}, {.bytes = 100}};
  for (uint32_t flags = 0; flags <= GM_BATCH_GROUPED; flags++) {
    for (size_t s = 0; s < 2; s++) {
      pool_bench bench;
      gm_part parts[3];
      gm_error why = {.status = GM_OK};
      const gm_batch_params params = batch_of(requests, 2, flags);
      open_with(&bench, strategies[s], "null", "null:capacity=64M");
      pool_bench_ok(gm_alloc_batch(bench.pool, &params, parts, NULL, err));
      parts[2] = parts[1];
      assert_int_equal(gm_free_batch(bench.pool, parts, 3, NULL, &why), GM_ERR_INVALID_ARGUMENT);
      assert_non_null(strstr(why.message, "part 2"));
      assert_int_equal(pool_bench_stats(&bench).active, 0);
      pool_bench_close(&bench);
    }
  }
}

static void test_a_group_is_of_one_kind(void **state) {
  (void)state;
  static const gm_request requests[][2] = {{{.bytes = 1}, {.bytes = 1, .flags = GM_ZERO}},
                                           {{.bytes = 1}, {.bytes = 1, .must_be = GM_ANYWHERE}},
                                           {{.bytes = 1}, {.bytes = 1, .usage = GM_USAGE_UNIFORM}}};
  pool_bench bench;
  gm_part parts[2];
  open_with(&bench, GM_STRATEGY_BUCKET, "cpu", NULL);
  for (size_t i = 0; i < 3; i++) {
    const gm_batch_params params = batch_of(requests[i], 2, GM_BATCH_GROUPED);
    size_t failed = 0;
    assert_int_equal(gm_alloc_batch(bench.pool, &params, parts, &failed, NULL), GM_ERR_INVALID_ARGUMENT);
    assert_int_equal(failed, 1);
  }
  assert_int_equal(pool_bench_stats(&bench).allocs, 0);
  pool_bench_close(&bench);
}

static void test_contents_arrive(void **state) {
  (void)state;
  enum { MANY = 150, BYTES = 1000 };
  static unsigned char source[MANY][BYTES], target[BYTES];
  gm_request requests[MANY];
  const void *contents[MANY];
  for (unsigned i = 0; i < MANY; i++) memset(source[i], (int)i, BYTES);
  for (uint32_t flags = 0; flags <= GM_BATCH_GROUPED; flags++) {
    pool_bench bench;
    gm_stream *stream;
    gm_part parts[MANY];
    open_with(&bench, GM_STRATEGY_BEST_FIT, "cpu", NULL);
    pool_bench_ok(gm_stream_create(bench.device, &stream, err));
    for (unsigned i = 0; i < MANY; i++) {
      requests[i] = (gm_request){.bytes = BYTES - i, .stream = flags || i % 2 ? stream : NULL};
      contents[i] = i % 3 ? source[i] : NULL;
    }
    gm_batch_params params = batch_of(requests, MANY, flags);
    params.contents = contents;
    pool_bench_ok(gm_alloc_batch(bench.pool, &params, parts, NULL, err));
    for (unsigned i = 0; i < MANY; i++) {
      if (!contents[i]) continue;
      memset(target, 255, BYTES);
      pool_bench_ok(gm_block_read(bench.pool, &parts[i].block, parts[i].offset, target, BYTES - i, NULL, NULL, err));
      assert_memory_equal(target, source[i], BYTES - i);
    }
    pool_bench_ok(gm_free_batch(bench.pool, parts, MANY, stream, err));
    pool_bench_ok(gm_stream_close(stream, err));
    pool_bench_close(&bench);
  }
}

/* A refused batch leaves the pool with what it had. */
static void test_all_or_nothing(void **state) {
  (void)state;
  static const gm_request requests[COUNT] = {
      {.bytes = MIB}, {.bytes = 100}, {.bytes = 2 * MIB}, {.bytes = 64 * MIB}, {.bytes = 1}};
  const gm_batch_params params = batch_of(requests, COUNT, 0);
  for (size_t s = 0; s < 2; s++) {
    pool_bench bench;
    gm_part parts[COUNT];
    gm_block kept, pooled;
    gm_error err = {.status = GM_OK};
    const gm_request request = {.bytes = MIB};
    size_t failed = 0;
    open_with(&bench, strategies[s], "null", "null:capacity=32M");
    assert_in_range(gm_alloc(bench.pool, &request, &kept), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
    assert_in_range(gm_alloc(bench.pool, &request, &pooled), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
    assert_int_equal(gm_free(bench.pool, &pooled, NULL), GM_OK);
    gm_stats before = pool_bench_stats(&bench);
    gm_status status = gm_alloc_batch(bench.pool, &params, parts, &failed, &err);
    assert_true(status == GM_ERR_OVER_LIMIT || status == GM_ERR_OUT_OF_DEVICE_MEMORY);
    assert_int_equal(failed, 3);
    assert_string_equal(err.op, "gm_alloc_batch");
    gm_stats after = pool_bench_stats(&bench);
    assert_int_equal(after.active, 1);
    assert_int_equal(after.in_use_bytes, before.in_use_bytes);
    assert_int_equal(after.requested_bytes, before.requested_bytes);
    assert_true(after.reserved_bytes <= before.reserved_bytes);
    assert_int_equal(gm_free(bench.pool, &kept, NULL), GM_OK);
    pool_bench_close(&bench);
  }
}

static void test_mistakes_take_nothing(void **state) {
  (void)state;
  static const gm_request bad[3] = {{.bytes = 1}, {.bytes = 0}, {.bytes = 1}};
  static const gm_request huge[3] = {{.bytes = UINT64_MAX / 2}, {.bytes = UINT64_MAX / 2}, {.bytes = 2}};
  pool_bench bench;
  gm_part parts[3];
  gm_error err = {.status = GM_OK};
  size_t failed = 9;
  open_with(&bench, GM_STRATEGY_BUCKET, "null", "null:capacity=32M");
  gm_batch_params params = batch_of(bad, 3, 0);
  assert_int_equal(gm_alloc_batch(bench.pool, &params, parts, &failed, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(failed, 1);
  for (uint32_t flags = 0; flags <= GM_BATCH_GROUPED; flags++) {
    params = batch_of(huge, 3, flags);
    assert_int_equal(gm_alloc_batch(bench.pool, &params, parts, &failed, &err), GM_ERR_INVALID_ARGUMENT);
    assert_int_equal(failed, 2);
    assert_non_null(strstr(err.message, "2^64-1"));
  }
  params = batch_of(bad, 3, 2);
  assert_int_equal(gm_alloc_batch(bench.pool, &params, parts, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  params = batch_of(NULL, 3, 0);
  assert_int_equal(gm_alloc_batch(bench.pool, &params, parts, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  params.struct_size = 3;
  assert_int_equal(gm_alloc_batch(bench.pool, &params, parts, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_alloc_batch(bench.pool, NULL, parts, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_alloc_batch(NULL, &params, parts, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free_batch(bench.pool, NULL, 1, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(pool_bench_stats(&bench).driver_allocs, 0);
  pool_bench_close(&bench);
}

/* Freed in order: what is oldest, or lies lowest, goes first. */
static void take_a_great_many(gm_strategy strategy, size_t many) {
  pool_bench bench;
  open_with(&bench, strategy, "null", "null:capacity=8G");
  gm_batch_params params = batch_of(NULL, 0, GM_BATCH_GROUPED);
  pool_bench_ok(gm_alloc_batch(bench.pool, &params, NULL, NULL, err));
  pool_bench_ok(gm_free_batch(bench.pool, NULL, 0, NULL, err));
  gm_request *requests = calloc(many, sizeof *requests);
  gm_part *parts = calloc(many, sizeof *parts);
  assert_non_null(requests);
  assert_non_null(parts);
  for (size_t i = 0; i < many; i++) requests[i].bytes = 1 + i % 3000;
  for (uint32_t flags = 0; flags <= GM_BATCH_GROUPED; flags++) {
    params = batch_of(requests, many, flags);
    pool_bench_ok(gm_alloc_batch(bench.pool, &params, parts, NULL, err));
    assert_int_equal(pool_bench_stats(&bench).active, flags ? 1 : many);
    pool_bench_ok(gm_free_batch(bench.pool, parts, many, NULL, err));
    assert_int_equal(pool_bench_stats(&bench).active, 0);
  }
  free(parts);
  free(requests);
  pool_bench_close(&bench);
}

static void test_none_and_a_great_many(void **state) {
  (void)state;
#ifdef GM_TEST_SANITIZED
  take_a_great_many(GM_STRATEGY_BUCKET, 50000); /* each a driver allocation: the thread sanitizer takes long for it */
#else
  take_a_great_many(GM_STRATEGY_BUCKET, great_many(1000000));
#endif
  take_a_great_many(GM_STRATEGY_BEST_FIT, great_many(1000000));
}

static void test_every_lack_of_host_memory_takes_nothing(void **state) {
  (void)state;
  enum { MANY = 200 };
  gm_request requests[MANY];
  gm_part parts[MANY];
  for (size_t i = 0; i < MANY; i++) requests[i] = (gm_request){.bytes = 5000 + i};
  const gm_batch_params params = batch_of(requests, MANY, 0);
  for (size_t s = 0; s < 2; s++) {
    gm_status status = GM_ERR_OUT_OF_HOST_MEMORY;
    for (size_t n = 1; status; n++) {
      pool_bench bench;
      open_with(&bench, strategies[s], "null", "null:capacity=64M");
      bench.host.fail_at = atomic_load(&bench.host.calls) + n;
      bench.host.fail_count = 3;
      status = gm_alloc_batch(bench.pool, &params, parts, NULL, NULL);
      bench.host.fail_at = 0;
      assert_int_equal(pool_bench_stats(&bench).active, status ? 0 : MANY);
      if (!status) pool_bench_ok(gm_free_batch(bench.pool, parts, MANY, NULL, err));
      pool_bench_close(&bench);
      assert_true(n < 2000);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_many_sizes_at_once),
      cmocka_unit_test(test_a_group_is_one_block),
      cmocka_unit_test(test_a_group_is_of_one_kind),
      cmocka_unit_test(test_contents_arrive),
      cmocka_unit_test(test_all_or_nothing),
      cmocka_unit_test(test_mistakes_take_nothing),
      cmocka_unit_test(test_none_and_a_great_many),
      cmocka_unit_test(test_every_lack_of_host_memory_takes_nothing),
      cmocka_unit_test(test_a_part_that_comes_twice_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
