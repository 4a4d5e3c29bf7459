/* Pools of fixed sizes: which sizes a list may have, what is there at once, and what is refused. With the name of a
 * backend it plays only what holds on every backend, there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gm/cleanup.h"
#include "gm/fragmentation.h"
#include "support/explained.h"
#include "support/fixed_bench.h"
#include "support/fixed_scene.h"

static void test_the_default_list(void **state) {
  (void)state;
  pool_bench bench;
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = GM_STRATEGY_FIXED};
  pool_bench_open(&bench, "null", "null:capacity=512M", &params);
  const uint64_t sizes[] = {1, 16, 256}, counts[] = {16, 4, 1};
  gm_block blocks[21];
  int taken = 0;
  assert_int_equal(gm_pool_strategy(bench.pool), GM_STRATEGY_FIXED);
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 336 * MIB);
  for (int i = 0; i < 3; i++) {
    for (uint64_t j = 0; j < counts[i]; j++) {
      blocks[taken] = take(bench.pool, sizes[i] * MIB - j, NULL, GM_ACQUIRE_OK);
      assert_int_equal(blocks[taken++].bytes, sizes[i] * MIB);
    }
    take(bench.pool, sizes[i] * MIB, NULL, GM_ACQUIRE_OVER_LIMIT);
  }
  while (taken > 0) give(bench.pool, &blocks[--taken], NULL);
  pool_bench_close(&bench);
}

/* Once each has been used, a quick list has them, of whatever size. */
static void test_blocks_of_every_size_are_quick(void **state) {
  (void)state;
  pool_bench bench;
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = GM_STRATEGY_FIXED};
  const uint64_t sizes[] = {1, 16, 256};
  gm_block blocks[3];
  gm_stats before = {.struct_size = sizeof before};
  pool_bench_open(&bench, "null", "null:capacity=512M", &params);
  for (int turn = 0; turn < 10; turn++) {
    for (int i = 0; i < 3; i++) blocks[i] = take(bench.pool, sizes[i] * MIB, NULL, GM_ACQUIRE_OK);
    for (int i = 0; i < 3; i++) give(bench.pool, &blocks[i], NULL);
    if (turn == 0) before = pool_bench_stats(&bench);
  }
  const gm_stats now = pool_bench_stats(&bench);
  assert_int_equal(now.global_hits - before.global_hits, 27);
  assert_int_equal(now.global_cache_hits - before.global_cache_hits, 3); /* a look at the figures empties the lists */
  pool_bench_close(&bench);
}

/* Two sizes that nearly are one, and free blocks that no quick list has. */
static void test_a_block_is_never_cut(void **state) {
  (void)state;
  static const gm_warm_up close[] = {{MIB, 1}, {MIB + 256, 1}, {4 * MIB, 1}};
  const gm_pool_params params = {
      .struct_size = sizeof params, .strategy = GM_STRATEGY_FIXED, .sizes = close, .size_count = 3};
  pool_bench bench;
  pool_bench_open(&bench, "null", "null:capacity=64M", &params);
  for (int turn = 0; turn < 3; turn++) {
    gm_fragmentation holes = {.struct_size = sizeof holes};
    pool_bench_ok(gm_pool_fragmentation(bench.pool, &holes, err)); /* it empties the quick lists */
    assert_int_equal(holes.hole_bytes, 0);
    const gm_block small = take(bench.pool, 1, NULL, GM_ACQUIRE_OK);
    const gm_block middle = take(bench.pool, MIB + 1, NULL, GM_ACQUIRE_OK);
    assert_int_equal(small.bytes, MIB);
    assert_int_equal(middle.bytes, MIB + 256);
    take(bench.pool, MIB, NULL, GM_ACQUIRE_OVER_LIMIT);
    give(bench.pool, &small, NULL);
    give(bench.pool, &middle, NULL);
  }
  assert_int_equal(pool_bench_stats(&bench).driver_allocs, 3);
  pool_bench_close(&bench);
}

/* A block notes at most 4 GiB of waste. */
static void test_a_small_request_and_a_huge_block(void **state) {
  (void)state;
  static const gm_warm_up huge[] = {{8192 * MIB, 1}};
  const gm_pool_params params = {
      .struct_size = sizeof params, .strategy = GM_STRATEGY_FIXED, .sizes = huge, .size_count = 1};
  pool_bench bench;
  pool_bench_open(&bench, "null", "null:capacity=16G", &params);
  for (uint64_t bytes = 1; bytes <= 8192 * MIB; bytes += 8192 * MIB - 1) {
    const gm_block block = take(bench.pool, bytes, NULL, GM_ACQUIRE_OK);
    assert_int_equal(block.bytes, 8192 * MIB);
    assert_int_equal(pool_bench_stats(&bench).requested_bytes, bytes > 1 ? bytes : 8192 * MIB - UINT32_MAX);
    give(bench.pool, &block, NULL);
    assert_int_equal(pool_bench_stats(&bench).requested_bytes, 0);
  }
  pool_bench_close(&bench);
}

static void test_a_warm_pool_asks_no_driver(void **state) {
  (void)state;
  pool_bench bench;
  gm_stream *stream;
  open_fixed(&bench, 0, 0);
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  const gm_stats warm = pool_bench_stats(&bench);
  assert_int_equal(warm.driver_allocs, 3);
  for (int turn = 0; turn < 50; turn++) {
    const gm_block small = take(bench.pool, MIB / 2 + 1, stream, GM_ACQUIRE_OK);
    const gm_block large = take(bench.pool, MIB + 1, stream, GM_ACQUIRE_OK);
    const gm_stats now = pool_bench_stats(&bench);
    assert_int_equal(now.in_use_bytes - now.requested_bytes, 5 * MIB - (MIB / 2 + MIB + 2)); /* what is wasted */
    take(bench.pool, 2 * MIB, stream, GM_ACQUIRE_OVER_LIMIT);
    give(bench.pool, &small, turn % 3 ? stream : NULL);
    give(bench.pool, &large, turn % 2 ? stream : NULL);
  }
  const gm_stats now = pool_bench_stats(&bench);
  assert_int_equal(now.driver_allocs, warm.driver_allocs);
  assert_int_equal(now.driver_frees, 0);
  pool_bench_ok(gm_stream_close(stream, err));
  pool_bench_close(&bench);
}

static void test_what_is_larger_is_refused(void **state) {
  (void)state;
  pool_bench bench;
  open_fixed(&bench, GM_NO_LIMIT, 0);
  gm_request request = {.bytes = 4 * MIB + 1, .deadline_ns = UINT64_C(3600000000000)}; /* no free could serve it */
  gm_block block;
  for (int i = 0; i < 2; i++) {
    assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_EXHAUSTED);
    const gm_explanation why = explained(bench.pool, &request);
    assert_non_null(strstr(why.text, "fixed sizes, of 4194304 bytes at most"));
    assert_int_equal(why.cause, GM_CAUSE_SINGLE_ALLOCATION);
    assert_int_equal(why.change, GM_CHANGE_SPLIT);
    assert_int_equal(why.change_bytes, 4 * MIB);
    request.flags = GM_DEDICATED;
  }
  assert_int_equal(pool_bench_stats(&bench).driver_allocs, 3);
  pool_bench_close(&bench);
}

static void test_what_is_larger_is_passed_on(void **state) {
  (void)state;
  pool_bench bench;
  gm_stream *stream;
  open_fixed(&bench, 15 * MIB, GM_POOL_PASS_LARGER);
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  take(bench.pool, 10 * MIB, NULL, GM_ACQUIRE_OVER_LIMIT);
  for (int turn = 0; turn < 3; turn++) {
    const gm_block block = take(bench.pool, 9 * MIB, NULL, GM_ACQUIRE_FRESH);
    assert_int_equal(block.bytes, 9 * MIB);
    give(bench.pool, &block, NULL);
    assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 6 * MIB);
  }
  const gm_block block = take(bench.pool, 9 * MIB, stream, GM_ACQUIRE_FRESH);
  give(bench.pool, &block, stream);
  pool_bench_ok(gm_stream_sync(stream, err));
  const gm_block next = take(bench.pool, 8 * MIB, NULL, GM_ACQUIRE_OK); /* it had not gone yet */
  give(bench.pool, &next, NULL);
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 6 * MIB);
  pool_bench_ok(gm_stream_close(stream, err));
  pool_bench_close(&bench);
}

static void test_a_size_that_is_out(void **state) {
  (void)state;
  pool_bench bench;
  open_fixed(&bench, 0, GM_POOL_TAKE_LARGER);
  gm_block blocks[3];
  for (int i = 0; i < 2; i++) blocks[i] = take(bench.pool, MIB, NULL, GM_ACQUIRE_OK);
  blocks[2] = take(bench.pool, 1, NULL, GM_ACQUIRE_OK);
  assert_int_equal(blocks[2].bytes, 4 * MIB);
  take(bench.pool, 1, NULL, GM_ACQUIRE_OVER_LIMIT);
  for (int i = 0; i < 3; i++) give(bench.pool, &blocks[i], NULL);
  blocks[0] = take(bench.pool, 1, NULL, GM_ACQUIRE_OK);
  assert_int_equal(blocks[0].bytes, MIB);
  give(bench.pool, &blocks[0], NULL);
  pool_bench_close(&bench);
}

static void test_a_pool_that_may_grow(void **state) {
  (void)state;
  pool_bench bench;
  open_fixed(&bench, 7 * MIB + MIB / 2, 0);
  gm_block blocks[3];
  for (int i = 0; i < 2; i++) blocks[i] = take(bench.pool, 5, NULL, GM_ACQUIRE_OK);
  blocks[2] = take(bench.pool, 5, NULL, GM_ACQUIRE_FRESH);
  assert_int_equal(blocks[2].bytes, MIB);
  take(bench.pool, 5, NULL, GM_ACQUIRE_OVER_LIMIT); /* half a block is none */
  for (int i = 0; i < 3; i++) give(bench.pool, &blocks[i], NULL);
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 7 * MIB);
  pool_bench_close(&bench);
}

static void test_only_a_trim_gives_blocks_back(void **state) {
  (void)state;
  pool_bench bench;
  gm_pool *other;
  open_fixed(&bench, 0, 0);
  pool_bench_ok(gm_pool_create(bench.device, NULL, &other, err));
  take(other, 60 * MIB, NULL, GM_ACQUIRE_OVER_LIMIT);
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 6 * MIB);
  assert_int_equal(gm_pool_trim(bench.pool, 0), 6 * MIB);
  const gm_block block = take(bench.pool, 2 * MIB, NULL, GM_ACQUIRE_FRESH);
  assert_int_equal(block.bytes, 4 * MIB);
  give(bench.pool, &block, NULL);
  pool_bench_ok(gm_pool_destroy(other, err));
  pool_bench_close(&bench);
}

static void test_no_cap_is_by_the_list(void **state) {
  (void)state;
  pool_bench bench;
  open_fixed(&bench, 0, 0);
  const gm_block large = take(bench.pool, 4 * MIB, NULL, GM_ACQUIRE_OK);
  pool_bench_ok(gm_pool_set_max_bytes(bench.pool, 10 * MIB, err));
  const gm_block more = take(bench.pool, 4 * MIB, NULL, GM_ACQUIRE_FRESH);
  give(bench.pool, &more, NULL);
  assert_int_equal(gm_pool_trim(bench.pool, 0), 6 * MIB);
  pool_bench_ok(gm_pool_set_max_bytes(bench.pool, 0, err)); /* what the list took, 6 MiB */
  const gm_block small = take(bench.pool, MIB, NULL, GM_ACQUIRE_FRESH);
  take(bench.pool, 4 * MIB, NULL, GM_ACQUIRE_OVER_LIMIT);
  give(bench.pool, &small, NULL);
  give(bench.pool, &large, NULL);
  pool_bench_close(&bench);
}

/* They are for pools that cut blocks. */
static void test_what_such_a_pool_has_no_use_for(void **state) {
  (void)state;
  pool_bench bench;
  open_fixed(&bench, GM_NO_LIMIT, 0);
  assert_int_equal(gm_pool_prepare(bench.pool, 32 * MIB, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_not_equal(gm_pool_configure(bench.pool, "aggressive_coalescing", "true", NULL), GM_OK);
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 6 * MIB);
  pool_bench_close(&bench);
}

static void test_alignment_and_red_zones(void **state) {
  (void)state;
  pool_bench bench;
  const gm_pool_params params = {.struct_size = sizeof params,
                                 .strategy = GM_STRATEGY_FIXED,
                                 .red_zone_bytes = 4096,
                                 .sizes = two_sizes,
                                 .size_count = 2};
  pool_bench_open(&bench, "cpu", NULL, &params);
  const gm_request request = {.bytes = MIB, .align = 256};
  gm_block block;
  for (int i = 0; i < 4; i++) {
    assert_int_equal(explained_alloc(bench.pool, &request, &block), GM_ACQUIRE_OK);
    assert_true(block.bytes >= MIB && block.address % 256 == 0);
    give(bench.pool, &block, NULL);
  }
  pool_bench_close(&bench);
}

static void refused_list(gm_device *device, const gm_pool_params *asked, const char *word) {
  gm_error err = {.status = GM_OK};
  gm_pool *pool = NULL;
  assert_int_equal(gm_pool_create(device, asked, &pool, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, word));
  assert_null(pool);
}

static void test_bad_lists_are_refused(void **state) {
  (void)state;
  static const gm_warm_up zero[] = {{0, 1}}, same[] = {{MIB, 1}, {MIB, 1}}, down[] = {{2 * MIB, 1}, {MIB, 1}},
                          product[] = {{MIB, UINT64_MAX / 2}}, sum[] = {{MIB, UINT64_MAX >> 20}, {2 * MIB, 1}};
  static const gm_warm_up many[GM_FIXED_SIZES_MOST + 1] = {{MIB, 1}};
  pool_bench bench;
  pool_bench_open_device(&bench, "null", "null:capacity=64M");
  gm_pool_params params = {.struct_size = sizeof params, .strategy = GM_STRATEGY_FIXED, .sizes = zero, .size_count = 1};
  refused_list(bench.device, &params, "sizes[0].bytes` is 0, must be above 0");
  params.sizes = same, params.size_count = 2;
  refused_list(bench.device, &params, "sizes[1].bytes` is 1048576, must be above 1048576");
  params.sizes = down;
  refused_list(bench.device, &params, "sizes[1].bytes` is 1048576, must be above 2097152");
  params.sizes = sum;
  refused_list(bench.device, &params, "more than 2^64-1 bytes");
  params.sizes = product, params.size_count = 1;
  refused_list(bench.device, &params, "more than 2^64-1 bytes");
  params.sizes = many, params.size_count = GM_FIXED_SIZES_MOST + 1;
  refused_list(bench.device, &params, "1 to 16 entries");
  params.size_count = 0;
  refused_list(bench.device, &params, "1 to 16 entries");
  params.sizes = NULL, params.size_count = 1;
  refused_list(bench.device, &params, "1 to 16 entries");
  params.sizes = two_sizes, params.size_count = 2, params.strategy = GM_STRATEGY_BUCKET;
  refused_list(bench.device, &params, "need the strategy GM_STRATEGY_FIXED");
  params.sizes = NULL, params.size_count = 0, params.flags = GM_POOL_PASS_LARGER;
  refused_list(bench.device, &params, "unknown bits");
  params.strategy = GM_STRATEGY_FIXED, params.keep_bytes = MIB;
  refused_list(bench.device, &params, "keep_bytes");
  bench.pool = NULL;
  pool_bench_close(&bench);
}

static void test_a_device_that_is_too_small(void **state) {
  (void)state;
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = GM_STRATEGY_FIXED};
  pool_bench bench;
  gm_error why = {.status = GM_OK};
  pool_bench_open_device(&bench, "null", "null:capacity=64M");
  gm_stats stats = {.struct_size = sizeof stats};
  assert_int_not_equal(gm_pool_create(bench.device, &params, &bench.pool, &why), GM_OK);
  assert_non_null(strstr(why.op, "gm_pool_create"));
  assert_true(why.message[0] != 0);
  assert_null(bench.pool);
  pool_bench_ok(gm_device_stats(bench.device, &stats, err));
  assert_int_equal(stats.reserved_bytes, 0);
  pool_bench_close(&bench);
}

static void test_every_lack_of_host_memory_leaves_nothing(void **state) {
  (void)state;
  const gm_pool_params params = {
      .struct_size = sizeof params, .strategy = GM_STRATEGY_FIXED, .sizes = two_sizes, .size_count = 2};
  gm_status status = GM_ERR_OUT_OF_HOST_MEMORY;
  for (size_t n = 1; status; n++) {
    pool_bench bench;
    gm_stats stats = {.struct_size = sizeof stats};
    pool_bench_open_device(&bench, "null", "null:capacity=64M");
    bench.host.fail_at = atomic_load(&bench.host.calls) + n;
    bench.host.fail_count = 1;
    status = gm_pool_create(bench.device, &params, &bench.pool, NULL);
    bench.host.fail_at = 0;
    pool_bench_ok(gm_device_stats(bench.device, &stats, err));
    assert_int_equal(stats.reserved_bytes, status ? 0 : 6 * MIB);
    pool_bench_close(&bench);
    assert_true(n < 1000);
  }
}

static const char *chosen; /* the backend */

static void test_on_a_backend(void **state) {
  (void)state;
  gm_context *ctx;
  gm_device *device;
  gm_stream *stream;
  const gm_context_params params = {.struct_size = sizeof params};
  pool_bench_ok(gm_context_create(&params, &ctx, err));
  pool_bench_ok(gm_device_open_index(ctx, chosen, 0, &device, err));
  pool_bench_ok(gm_stream_create(device, &stream, err));
  fixed_scene_run(device, stream, NULL, NULL);
  pool_bench_ok(gm_stream_close(stream, err));
  pool_bench_ok(gm_device_close(device, err));
  pool_bench_ok(gm_context_destroy(ctx, err));
}

int main(int argc, char **argv) {
  const struct CMUnitTest backend[] = {cmocka_unit_test(test_on_a_backend)};
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_default_list),
      cmocka_unit_test(test_blocks_of_every_size_are_quick),
      cmocka_unit_test(test_a_block_is_never_cut),
      cmocka_unit_test(test_a_small_request_and_a_huge_block),
      cmocka_unit_test(test_a_warm_pool_asks_no_driver),
      cmocka_unit_test(test_what_is_larger_is_refused),
      cmocka_unit_test(test_what_is_larger_is_passed_on),
      cmocka_unit_test(test_a_size_that_is_out),
      cmocka_unit_test(test_a_pool_that_may_grow),
      cmocka_unit_test(test_only_a_trim_gives_blocks_back),
      cmocka_unit_test(test_no_cap_is_by_the_list),
      cmocka_unit_test(test_what_such_a_pool_has_no_use_for),
      cmocka_unit_test(test_alignment_and_red_zones),
      cmocka_unit_test(test_bad_lists_are_refused),
      cmocka_unit_test(test_a_device_that_is_too_small),
      cmocka_unit_test(test_every_lack_of_host_memory_leaves_nothing),
  };
  chosen = argc > 1 ? argv[1] : NULL;
  return chosen ? cmocka_run_group_tests(backend, NULL, NULL) : cmocka_run_group_tests(tests, NULL, NULL);
}
