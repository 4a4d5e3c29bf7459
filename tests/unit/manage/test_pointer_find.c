/* gm's knowledge of an address: gm_pointer_find and gm_block_of; and odd sizes, by block and by pointer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/pool_bench.h"
#include "support/random.h"

static gm_pointer_info find(const pool_bench *bench, uint64_t address) {
  gm_pointer_info info = {.struct_size = sizeof info};
  assert_int_equal(gm_pointer_find(bench->device, (const void *)(uintptr_t)address, &info), GM_OK);
  return info;
}

static gm_status look(const pool_bench *bench, uint64_t address) {
  gm_pointer_info info = {.struct_size = sizeof info};
  return gm_pointer_find(bench->device, (const void *)(uintptr_t)address, &info);
}

static gm_block take(const pool_bench *bench, const gm_request *request) {
  gm_block block = {0};
  assert_in_range(gm_alloc(bench->pool, request, &block), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
  return block;
}

static void all_is_told(gm_strategy strategy) {
  pool_bench bench;
  gm_stream *stream = NULL;
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategy};
  pool_bench_open(&bench, "null", "null:capacity=64M", &params);
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  const uint32_t tag = gm_tag(bench.ctx, "kv");
  const gm_request request = {.bytes = 5000, .stream = stream, .tag = tag}, plain = {.bytes = 77};
  for (int turn = 0; turn < 3; turn++) { /* new memory, pooled memory, and by the shortest way */
    const gm_block block = take(&bench, &request), other = take(&bench, &plain);
    const gm_pointer_info info = find(&bench, block.address + 4321);
    assert_memory_equal(&info.block, &block, sizeof block);
    assert_int_equal(info.offset, 4321);
    assert_int_equal(info.requested_bytes, 5000);
    assert_int_equal(info.tag, tag);
    assert_int_equal(info.stream, gm_stream_id(stream));
    assert_ptr_equal(info.pool, bench.pool);
    assert_int_equal(find(&bench, other.address).stream, 0);
    assert_int_equal(find(&bench, other.address).tag, 0);
    assert_int_equal(gm_free(bench.pool, &block, stream), GM_OK);
    assert_int_equal(gm_free(bench.pool, &other, NULL), GM_OK);
    assert_int_equal(look(&bench, block.address + 4321), GM_ERR_NOT_FOUND);
  }
  pool_bench_ok(gm_stream_close(stream, err));
  pool_bench_close(&bench);
}

static void test_all_is_told_of_segments(void **state) {
  (void)state;
  all_is_told(GM_STRATEGY_BEST_FIT);
}

static void test_all_is_told_of_buckets(void **state) {
  (void)state;
  all_is_told(GM_STRATEGY_BUCKET);
}

static void closed_stream_is_told_no_more(gm_strategy strategy) {
  pool_bench bench;
  gm_stream *first = NULL, *second = NULL;
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategy};
  pool_bench_open(&bench, "null", "null:capacity=64M", &params);
  pool_bench_ok(gm_stream_create(bench.device, &first, err));
  const gm_block block = take(&bench, &(gm_request){.bytes = 5000, .stream = first});
  assert_int_equal(find(&bench, block.address).stream, gm_stream_id(first));
  pool_bench_ok(gm_stream_close(first, err));
  pool_bench_ok(gm_stream_create(bench.device, &second, err));
  const gm_block next = take(&bench, &(gm_request){.bytes = 5000, .stream = second});
  assert_int_equal(find(&bench, next.address).stream, gm_stream_id(second));
  assert_int_equal(find(&bench, block.address).stream, 0);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  assert_int_equal(gm_free(bench.pool, &next, NULL), GM_OK);
  pool_bench_ok(gm_stream_close(second, err));
  pool_bench_close(&bench);
}

static void test_a_closed_stream_is_told_no_more(void **state) {
  (void)state;
  closed_stream_is_told_no_more(GM_STRATEGY_BEST_FIT);
  closed_stream_is_told_no_more(GM_STRATEGY_BUCKET);
}

static void test_each_pool_of_the_device_is_asked(void **state) {
  (void)state;
  pool_bench bench;
  gm_pool *other = NULL;
  gm_block block = {0};
  const gm_request request = {.bytes = 1 << 20};
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  pool_bench_ok(gm_pool_create(bench.device, NULL, &other, err));
  const gm_block mine = take(&bench, &request);
  assert_in_range(gm_alloc(other, &request, &block), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
  assert_ptr_equal(find(&bench, mine.address + 9).pool, bench.pool);
  assert_ptr_equal(find(&bench, block.address + 9).pool, other);
  assert_int_equal(gm_block_of(bench.pool, (const void *)(uintptr_t)(block.address + 9), &block), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_free(other, &block, NULL), GM_OK);
  assert_int_equal(gm_free(bench.pool, &mine, NULL), GM_OK);
  pool_bench_ok(gm_pool_destroy(other, err));
  pool_bench_close(&bench);
}

static void test_wrong_questions_are_refused(void **state) {
  (void)state;
  pool_bench bench;
  gm_pointer_info info = {.struct_size = sizeof info};
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  assert_int_equal(gm_pointer_find(bench.device, (const void *)(uintptr_t)4096, &info), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_pointer_find(bench.device, (const void *)UINTPTR_MAX, &info), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_pointer_find(bench.device, NULL, &info), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pointer_find(bench.device, &bench, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pointer_find(NULL, &bench, &info), GM_ERR_INVALID_ARGUMENT);
  info.struct_size = 3;
  assert_int_equal(gm_pointer_find(bench.device, &bench, &info), GM_ERR_INVALID_ARGUMENT);
  pool_bench_close(&bench);
}

/* Without host memory for the table of what lies inside what, the answer is the same. */
static void test_no_host_memory_makes_it_slow_and_not_wrong(void **state) {
  (void)state;
  enum { COUNT = 100 };
  pool_bench bench;
  gm_block blocks[COUNT], found;
  uint64_t random = 5;
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  for (int i = 0; i < COUNT; i++) blocks[i] = take(&bench, &(gm_request){.bytes = 1000 + test_random(&random) % 9000});
  for (int turn = 0; turn < 2; turn++) {
    bench.host.fail_at = turn == 0 ? atomic_load(&bench.host.calls) + 1 : 0;
    for (int i = 0; i < COUNT; i++) {
      const uint64_t offset = 1 + test_random(&random) % (blocks[i].bytes - 1);
      assert_int_equal(gm_block_of(bench.pool, (const void *)(uintptr_t)(blocks[i].address + offset), &found), GM_OK);
      assert_memory_equal(&found, &blocks[i], sizeof found);
    }
  }
  for (int i = 0; i < COUNT; i++) assert_int_equal(gm_free(bench.pool, &blocks[i], NULL), GM_OK);
  pool_bench_close(&bench);
}

/* No byte, one, the largest power of two: by block and by pointer. */
static void check_odd_sizes(gm_strategy strategy) {
  static const uint64_t sizes[] = {0, 1, UINT64_C(1) << 63};
  pool_bench bench;
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategy};
  pool_bench_open(&bench, "null", "null:capacity=64M", &params);
  for (size_t i = 0; i < 3; i++) {
    const gm_request request = {.bytes = sizes[i]};
    gm_block block = {0};
    const gm_acquire answer = gm_alloc(bench.pool, &request, &block);
    void *pointer = gm_malloc(bench.pool, sizes[i], NULL);
    if (sizes[i] == 1) {
      assert_int_equal(answer, GM_ACQUIRE_FRESH);
      assert_non_null(pointer);
      assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
      assert_int_equal(gm_free_ptr(bench.pool, pointer, sizes[i], NULL), GM_OK);
    } else {
      assert_null(pointer);
      assert_true(sizes[i] ? answer == GM_ACQUIRE_EXHAUSTED || answer == GM_ACQUIRE_OVER_LIMIT
                           : answer == GM_ACQUIRE_INVALID);
    }
    assert_int_equal(pool_bench_stats(&bench).active, 0);
  }
  pool_bench_close(&bench);
}

static void test_odd_sizes(void **state) {
  (void)state;
  check_odd_sizes(GM_STRATEGY_BUCKET);
  check_odd_sizes(GM_STRATEGY_BEST_FIT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all_is_told_of_segments),
      cmocka_unit_test(test_all_is_told_of_buckets),
      cmocka_unit_test(test_a_closed_stream_is_told_no_more),
      cmocka_unit_test(test_each_pool_of_the_device_is_asked),
      cmocka_unit_test(test_wrong_questions_are_refused),
      cmocka_unit_test(test_odd_sizes),
      cmocka_unit_test(test_no_host_memory_makes_it_slow_and_not_wrong),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
