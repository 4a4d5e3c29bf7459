/* Pools: creation, requests, reuse, limits, misuse; on the null and CPU backends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/explained.h"
#include "support/pool_bench.h"

#define MIB (UINT64_C(1) << 20)

/* Where a test is about blocks that are driver allocations of their own. */
static const gm_pool_params buckets = {.struct_size = sizeof buckets, .strategy = GM_STRATEGY_BUCKET};

static gm_block take(gm_pool *pool, uint64_t bytes, gm_acquire expected) {
  gm_request request = {.bytes = bytes};
  gm_block block = {0};
  assert_int_equal(gm_alloc(pool, &request, &block), expected);
  return block;
}

static void test_a_freed_block_is_handed_out_again(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "null", "null:capacity=64M", &buckets);
  gm_block first = take(bench.pool, 1000, GM_ACQUIRE_FRESH);
  assert_int_equal(first.bytes, 1024);
  assert_int_equal(gm_free(bench.pool, &first, NULL), GM_OK);
  gm_block second = take(bench.pool, 600, GM_ACQUIRE_OK);
  assert_int_equal(second.address, first.address);
  assert_int_not_equal(second.check, first.check);
  assert_int_equal(gm_free(bench.pool, &second, NULL), GM_OK);
  gm_stats stats = pool_bench_stats(&bench);
  assert_int_equal(stats.misses, 1);
  assert_int_equal(stats.global_hits, 1);
  assert_int_equal(stats.allocs, 2);
  assert_int_equal(stats.active, 0);
  assert_int_equal(stats.reserved_bytes, 1024);
  assert_int_equal(stats.pooled_bytes, 1024);
  assert_int_equal(stats.reclaimable_bytes, 1024);
  assert_int_equal(stats.driver_allocs, 1);
  assert_int_equal(gm_pool_trim(bench.pool, 0), 1024);
  stats = pool_bench_stats(&bench);
  assert_int_equal(stats.reserved_bytes, 0);
  assert_int_equal(stats.reclaimable_bytes, 0);
  assert_int_equal(stats.driver_frees, 1);
  pool_bench_close(&bench);
}

static void test_a_bucket_keeps_only_so_many(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open_device(&bench, "null", "null:capacity=64M");
  pool_bench_ok(gm_config_set(bench.ctx, "max_pooled_per_bucket", "3", err));
  pool_bench_ok(gm_pool_create(bench.device, &buckets, &bench.pool, err));
  gm_block blocks[8];
  for (int i = 0; i < 8; i++) blocks[i] = take(bench.pool, 4096, GM_ACQUIRE_FRESH);
  for (int i = 0; i < 8; i++) assert_int_equal(gm_free(bench.pool, &blocks[i], NULL), GM_OK);
  gm_stats stats = pool_bench_stats(&bench);
  assert_int_equal(stats.pooled_bytes, 3 * 4096);
  assert_int_equal(stats.driver_frees, 5);
  pool_bench_close(&bench);
}

static void test_rounding_stops_at_the_cap(void **state) {
  (void)state;
  pool_bench bench;
  gm_pool_params params = {.struct_size = sizeof params, .strategy = GM_STRATEGY_BUCKET, .max_bytes = 5 * MIB};
  pool_bench_open(&bench, "null", "null:capacity=64M", &params);
  gm_block block = take(bench.pool, 5 * MIB, GM_ACQUIRE_FRESH); /* 8 MiB would be too much */
  assert_int_equal(block.bytes, 5 * MIB);
  take(bench.pool, 1, GM_ACQUIRE_OVER_LIMIT);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  block = take(bench.pool, 4 * MIB + 1, GM_ACQUIRE_OK); /* of the same class, though no power of two */
  assert_int_equal(block.bytes, 5 * MIB);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  block = take(bench.pool, 1 * MIB, GM_ACQUIRE_FRESH); /* the pooled one is given back for it */
  gm_stats stats = pool_bench_stats(&bench);
  assert_int_equal(stats.reserved_bytes, MIB);
  assert_int_equal(stats.peak_reserved_bytes, 5 * MIB);
  assert_int_equal(stats.over_limit, 1);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  pool_bench_close(&bench);
}

static void test_rounding_stops_at_what_is_free(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "null", "null:capacity=6M", NULL);
  gm_block block = take(bench.pool, 5 * MIB, GM_ACQUIRE_FRESH);
  assert_int_equal(block.bytes, 5 * MIB);
  gm_block more;
  gm_request request = {.bytes = 2 * MIB};
  gm_acquire answer = gm_alloc(bench.pool, &request, &more);
  assert_true(answer == GM_ACQUIRE_EXHAUSTED || answer == GM_ACQUIRE_OVER_LIMIT);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  pool_bench_close(&bench);
}

static void test_rounding_stops_at_the_largest_allocation(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "null", "null:capacity=64M,max_alloc=3M", &buckets);
  gm_block block = take(bench.pool, 3 * MIB, GM_ACQUIRE_FRESH);
  assert_int_equal(block.bytes, 3 * MIB);
  take(bench.pool, 3 * MIB + 1, GM_ACQUIRE_EXHAUSTED);
  gm_explanation why = {.struct_size = sizeof why};
  gm_request request = {.bytes = 3 * MIB + 1};
  pool_bench_ok(gm_explain(bench.pool, &request, &why, err));
  assert_int_equal(why.status, GM_OK);
  assert_int_equal(why.last_failure.status, GM_ERR_ALLOCATION_TOO_LARGE);
  assert_true(why.last_failure_bytes == request.bytes && why.max_alloc_bytes == 3 * MIB);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  pool_bench_close(&bench);
}

static void test_two_pools_share_the_memory_fraction(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "null", "null:capacity=64M", &buckets);
  pool_bench_ok(gm_config_set(bench.ctx, "memory_fraction", "0.5", err));
  gm_pool *other;
  pool_bench_ok(gm_pool_create(bench.device, &buckets, &other, err));
  gm_block block = take(bench.pool, 30 * MIB, GM_ACQUIRE_FRESH);
  take(other, 3 * MIB, GM_ACQUIRE_OVER_LIMIT);
  gm_block small = take(other, 2 * MIB, block.bytes > 30 * MIB ? GM_ACQUIRE_OVER_LIMIT : GM_ACQUIRE_FRESH);
  if (small.bytes) gm_free(other, &small, NULL);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  pool_bench_ok(gm_pool_destroy(other, err));
  pool_bench_close(&bench);
}

static void test_wrong_requests_are_refused_by_name(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  static const struct {
    gm_request request;
    const char *word;
  } cases[] = {
      {{.bytes = 0}, "`bytes`"},
      {{.bytes = 8, .align = 3}, "`align`"},
      {{.bytes = 8, .flags = GM_EVICTABLE}, "`flags`"},
      {{.bytes = 8, .flags = 1u << 20}, "`flags`"},
      {{.bytes = 8, .usage = 1u << 20}, "`usage`"},
      {{.bytes = 8, .must_be = (gm_must_be)9}, "`must_be`"},
      {{.bytes = 8, .reserved = {1}}, "`reserved`"},
  };
  gm_block block;
  memset(&block, 0x5a, sizeof block);
  gm_block before = block;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(gm_alloc(bench.pool, &cases[i].request, &block), GM_ACQUIRE_INVALID);
    gm_explanation why = {.struct_size = sizeof why};
    pool_bench_ok(gm_explain(bench.pool, &cases[i].request, &why, err));
    assert_true(why.status == GM_ERR_INVALID_ARGUMENT || why.status == GM_ERR_NOT_SUPPORTED);
    assert_int_equal(why.last_failure.status, GM_OK);
    assert_non_null(strstr(why.text, cases[i].word));
  }
  assert_int_equal(gm_alloc(NULL, &cases[0].request, &block), GM_ACQUIRE_INVALID);
  assert_int_equal(gm_alloc(bench.pool, NULL, &block), GM_ACQUIRE_INVALID);
  assert_memory_equal(&block, &before, sizeof block);
  pool_bench_close(&bench);
}

static void test_sizes_near_the_end_are_refused(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  for (uint64_t less = 0; less < 3; less++) {
    gm_request request = {.bytes = UINT64_MAX - less};
    gm_block block;
    gm_acquire answer = explained_alloc(bench.pool, &request, &block);
    assert_true(answer == GM_ACQUIRE_EXHAUSTED || answer == GM_ACQUIRE_OVER_LIMIT);
  }
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 0);
  pool_bench_close(&bench);
}

static gm_block explain(const pool_bench *bench, uint64_t bytes, gm_acquire acquire, const char *word) {
  gm_request request = {.bytes = bytes};
  gm_block block = {0};
  assert_int_equal(explained_alloc(bench->pool, &request, &block), acquire);
  const gm_explanation why = explained(bench->pool, &request);
  if (!strstr(why.text, word)) fail_msg("\"%s\" does not say \"%s\"", why.text, word);
  return block;
}

static void test_the_report_says_what_would_help(void **state) {
  (void)state;
  pool_bench bench;
  gm_pool_params params = {.struct_size = sizeof params, .max_bytes = 16 * MIB, .name = "p"};
  pool_bench_open(&bench, "null", "null:capacity=12M,max_alloc=11M", &params);
  gm_block block = explain(&bench, 8 * MIB, GM_ACQUIRE_FRESH, "Pool \"p\" has refused nothing.");
  explain(&bench, 9 * MIB, GM_ACQUIRE_OVER_LIMIT, "in use are 5242880 more than the 12582912 that the pool's cap, ");
  explain(&bench, 20 * MIB, GM_ACQUIRE_OVER_LIMIT,
          "20971520 bytes are more than the 12582912 that the device has in all");
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  block = explain(&bench, 8 * MIB, GM_ACQUIRE_OK, "Pool \"p\" last refused 20 MiB: gm_alloc: "); /* as it was */
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  block = explain(&bench, 9 * MIB, GM_ACQUIRE_FRESH, " Now it has 9 MiB in use "); /* what was pooled is given back */
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  gm_explanation old = {.struct_size = 1};
  gm_request request = {.bytes = 1};
  gm_error failure;
  assert_int_equal(gm_explain(bench.pool, &request, &old, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_explain(bench.pool, &request, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_explain(NULL, &request, &old, &failure), GM_ERR_INVALID_ARGUMENT);
  pool_bench_close(&bench);
  params = (gm_pool_params){.struct_size = sizeof params, .no_vmm = true};
  pool_bench_open(&bench, "null", "null:capacity=64M,max_alloc=11M", &params);
  explain(&bench, 20 * MIB, GM_ACQUIRE_EXHAUSTED,
          "than the 11534336 that the driver allows for one allocation: ask for smaller pieces");
  pool_bench_close(&bench);
}

static void check_wrong_frees(gm_strategy strategy) {
  pool_bench bench;
  gm_pool_params params = {.struct_size = sizeof params, .checked = true, .strategy = strategy};
  pool_bench_open(&bench, "null", "null:capacity=64M", &params);
  gm_pool *other;
  pool_bench_ok(gm_pool_create(bench.device, &params, &other, err));
  gm_block block = take(bench.pool, 100, GM_ACQUIRE_FRESH), foreign = take(other, 100, GM_ACQUIRE_FRESH);
  gm_block altered[] = {block, block, block, block, block, {0}}; /* interior, …, of nobody */
  altered[0].address++;
  altered[1].bytes--;
  altered[2].memory++;
  altered[3].number += 1000000;
  altered[4].check--;
  for (int i = 0; i < 6; i++) assert_int_equal(gm_free(bench.pool, &altered[i], NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free(bench.pool, &foreign, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free(bench.pool, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free(NULL, &block, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free(other, &foreign, NULL), GM_OK);
  assert_int_equal(pool_bench_stats(&bench).active, 0);
  pool_bench_ok(gm_pool_destroy(other, err));
  pool_bench_close(&bench);
}

static void test_wrong_frees_damage_nothing(void **state) {
  (void)state;
  check_wrong_frees(GM_STRATEGY_BUCKET);
  check_wrong_frees(GM_STRATEGY_BEST_FIT);
}

static void test_destroy_with_blocks_out_changes_nothing(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  gm_error failure;
  gm_block block = take(bench.pool, 100, GM_ACQUIRE_FRESH);
  assert_int_equal(gm_pool_destroy(bench.pool, &failure), GM_ERR_BUSY);
  assert_non_null(strstr(failure.message, "1 blocks"));
  assert_int_equal(gm_device_close(bench.device, &failure), GM_ERR_BUSY);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  assert_int_equal(gm_pool_destroy(NULL, &failure), GM_OK);
  pool_bench_close(&bench);
}

static void test_wrong_parameters_of_a_pool(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  gm_error failure;
  gm_pool *out = NULL;
  gm_pool_params params = {.struct_size = 4};
  assert_int_equal(gm_pool_create(bench.device, &params, &out, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(failure.message, "struct_size"));
  params = (gm_pool_params){.struct_size = sizeof params, .strategy = (gm_strategy)7};
  assert_int_equal(gm_pool_create(bench.device, &params, &out, &failure), GM_ERR_INVALID_ARGUMENT);
  gm_upstream half = {0};
  params = (gm_pool_params){.struct_size = sizeof params, .upstream = &half};
  assert_int_equal(gm_pool_create(bench.device, &params, &out, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_create(NULL, NULL, &out, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_create(bench.device, NULL, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_null(out);
  pool_bench_close(&bench);
}

static void test_a_look_into_the_pool_takes_nothing_new(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "null", "null:capacity=64M", &buckets);
  gm_request request = {.bytes = 4096, .flags = GM_POOLED_ONLY};
  gm_block block;
  assert_int_equal(explained_alloc(bench.pool, &request, &block), GM_ACQUIRE_EXHAUSTED);
  assert_non_null(strstr(explained(bench.pool, &request).text, "GM_POOLED_ONLY allows no other"));
  gm_block first = take(bench.pool, 4096, GM_ACQUIRE_FRESH);
  assert_int_equal(gm_free(bench.pool, &first, NULL), GM_OK);
  assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_OK);
  assert_int_equal(gm_alloc(bench.pool, &request, &first), GM_ACQUIRE_EXHAUSTED);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  gm_stats stats = pool_bench_stats(&bench);
  assert_int_equal(stats.driver_allocs, 1);
  assert_int_equal(stats.failures, 0);
  pool_bench_close(&bench);
}

static void test_pools_add_up(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "null", "null:capacity=64M,devices=2", NULL);
  gm_device *device;
  gm_pool *second, *third;
  gm_error failure;
  pool_bench_ok(gm_device_open_index(bench.ctx, "null", 1, &device, err));
  pool_bench_ok(gm_pool_create(bench.device, NULL, &second, err));
  pool_bench_ok(gm_pool_create(device, NULL, &third, err));
  gm_block a = take(bench.pool, 1024, GM_ACQUIRE_FRESH), b = take(second, 2048, GM_ACQUIRE_FRESH),
           c = take(third, 4096, GM_ACQUIRE_FRESH);
  gm_stats stats = {.struct_size = sizeof stats};
  pool_bench_ok(gm_device_stats(bench.device, &stats, err));
  assert_int_equal(stats.in_use_bytes, 3072);
  assert_int_equal(stats.allocs, 2);
  pool_bench_ok(gm_device_stats(device, &stats, err));
  assert_int_equal(stats.in_use_bytes, 4096);
  pool_bench_ok(gm_context_stats(bench.ctx, &stats, err));
  assert_int_equal(stats.in_use_bytes, 7168);
  assert_int_equal(stats.struct_size, sizeof stats);
  assert_int_equal(gm_free(second, &b, NULL), GM_OK);
  pool_bench_ok(gm_pool_destroy(second, err)); /* out of the middle of the list */
  pool_bench_ok(gm_context_stats(bench.ctx, &stats, err));
  assert_int_equal(stats.in_use_bytes, 5120);
  assert_int_equal(gm_context_stats(NULL, &stats, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_context_stats(bench.ctx, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_device_stats(NULL, &stats, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_device_stats(device, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free(bench.pool, &a, NULL), GM_OK);
  assert_int_equal(gm_free(third, &c, NULL), GM_OK);
  pool_bench_ok(gm_pool_destroy(third, err));
  pool_bench_ok(gm_device_close(device, err));
  pool_bench_close(&bench);
}

static void test_foreign_memory_counts_in_limits(void **state) {
  (void)state;
  pool_bench bench;
  gm_error failure;
  gm_pool_params params = {.struct_size = sizeof params, .max_bytes = 4 * MIB};
  pool_bench_open(&bench, "null", "null:capacity=64M", &params);
  assert_int_equal(gm_pool_record_allocation(bench.pool, 3 * MIB, &failure), GM_OK);
  take(bench.pool, 2 * MIB, GM_ACQUIRE_OVER_LIMIT);
  assert_int_equal(gm_pool_record_allocation(bench.pool, 2 * MIB, &failure), GM_ERR_OVER_LIMIT);
  assert_int_equal(gm_pool_record_allocation(bench.pool, -4 * (int64_t)MIB, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_record_allocation(bench.pool, INT64_MIN, &failure), GM_ERR_INVALID_ARGUMENT);
  gm_stats stats = pool_bench_stats(&bench);
  assert_int_equal(stats.reserved_bytes, 3 * MIB);
  assert_int_equal(stats.in_use_bytes, 3 * MIB);
  assert_int_equal(stats.pooled_bytes, 0);
  assert_int_equal(gm_pool_record_allocation(bench.pool, -3 * (int64_t)MIB, &failure), GM_OK);
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 0);
  pool_bench_ok(gm_pool_set_max_bytes(bench.pool, 1 * MIB, err));
  take(bench.pool, 2 * MIB, GM_ACQUIRE_OVER_LIMIT);
  pool_bench_close(&bench);
}

static void test_alignment_is_kept_by_reuse(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  for (uint32_t align = 1; align <= 65536; align *= 2) {
    gm_request request = {.bytes = 512, .align = align};
    gm_block block;
    gm_acquire answer = gm_alloc(bench.pool, &request, &block);
    assert_true(answer == GM_ACQUIRE_OK || answer == GM_ACQUIRE_FRESH);
    assert_int_equal(block.address % align, 0);
    assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  }
  pool_bench_close(&bench);
}

static void test_zeroed_memory_is_zero_also_when_reused(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "cpu", NULL, NULL);
  for (int turn = 0; turn < 2; turn++) {
    gm_request request = {.bytes = 5000, .flags = GM_ZERO};
    gm_block block;
    assert_int_equal(gm_alloc(bench.pool, &request, &block), turn ? GM_ACQUIRE_OK : GM_ACQUIRE_FRESH);
    unsigned char *bytes = (unsigned char *)(uintptr_t)block.address;
    for (uint64_t i = 0; i < block.bytes; i++) assert_int_equal(bytes[i], 0);
    memset(bytes, 0xee, block.bytes);
    assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  }
  pool_bench_close(&bench);
}

static void test_the_nth_host_allocation_fails(void **state) {
  (void)state;
  bool done = false;
  for (size_t n = 1; !done && n < 400; n++) {
    pool_bench bench;
    pool_bench_open_device(&bench, "null", "null:capacity=64M");
    bench.host.fail_at = atomic_load(&bench.host.calls) + n;
    bench.host.fail_count = 1;
    gm_error failure;
    gm_pool_params params = {.struct_size = sizeof params, .strategy = GM_STRATEGY_BUCKET, .track = true};
    gm_status status = gm_pool_create(bench.device, &params, &bench.pool, &failure);
    if (status) assert_int_equal(status, GM_ERR_OUT_OF_HOST_MEMORY);
    gm_block blocks[70];
    int count = 0;
    gm_request request = {.bytes = 4096};
    while (bench.pool && count < 70) {
      gm_acquire answer = gm_alloc(bench.pool, &request, &blocks[count]);
      if (answer != GM_ACQUIRE_FRESH) {
        assert_true(answer == GM_ACQUIRE_EXHAUSTED || answer == GM_ACQUIRE_OVER_LIMIT);
        break;
      }
      count++;
    }
    done = count == 70 && atomic_load(&bench.host.calls) < bench.host.fail_at;
    while (count > 0) assert_int_equal(gm_free(bench.pool, &blocks[--count], NULL), GM_OK);
    if (bench.pool) assert_int_equal(pool_bench_stats(&bench).active, 0);
    pool_bench_close(&bench);
  }
  assert_true(done);
}

static void test_statistics_as_text_and_their_relations(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "null", "null:capacity=64M", &buckets);
  gm_block blocks[3];
  for (int i = 0; i < 3; i++) blocks[i] = take(bench.pool, 1000u << i, GM_ACQUIRE_FRESH);
  assert_int_equal(gm_free(bench.pool, &blocks[1], NULL), GM_OK);
  gm_stats stats = pool_bench_stats(&bench);
  assert_int_equal(stats.requested_bytes, 5000);
  assert_int_equal(stats.in_use_bytes, 1024 + 4096);
  assert_int_equal(stats.reserved_bytes, stats.in_use_bytes + stats.pooled_bytes);
  assert_int_equal(stats.allocs, stats.stream_hits + stats.global_hits + stats.misses);
  assert_int_equal(stats.active, stats.allocs - stats.frees);
  assert_int_equal(stats.peak_requested_bytes, 7000);
  assert_true(gm_stats_fragmentation(&stats) == 0.0); /* a kept block of a bucket is whole */
  assert_true(gm_stats_hit_rate(&stats) == 0.0);
  char text[4096], cut[64];
  size_t length = gm_stats_format(&stats, text, sizeof text);
  assert_int_equal(length, strlen(text));
  assert_non_null(strstr(text, "requested_bytes 5000\n"));
  assert_int_equal(gm_stats_format(&stats, cut, sizeof cut), length);
  assert_int_equal(strlen(cut), sizeof cut - 1);
  assert_int_equal(gm_stats_format(&stats, NULL, 0), length);
  gm_free(bench.pool, &blocks[0], NULL);
  gm_free(bench.pool, &blocks[2], NULL);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_freed_block_is_handed_out_again),
      cmocka_unit_test(test_a_bucket_keeps_only_so_many),
      cmocka_unit_test(test_rounding_stops_at_the_cap),
      cmocka_unit_test(test_rounding_stops_at_what_is_free),
      cmocka_unit_test(test_rounding_stops_at_the_largest_allocation),
      cmocka_unit_test(test_two_pools_share_the_memory_fraction),
      cmocka_unit_test(test_wrong_requests_are_refused_by_name),
      cmocka_unit_test(test_sizes_near_the_end_are_refused),
      cmocka_unit_test(test_the_report_says_what_would_help),
      cmocka_unit_test(test_wrong_frees_damage_nothing),
      cmocka_unit_test(test_destroy_with_blocks_out_changes_nothing),
      cmocka_unit_test(test_wrong_parameters_of_a_pool),
      cmocka_unit_test(test_a_look_into_the_pool_takes_nothing_new),
      cmocka_unit_test(test_pools_add_up),
      cmocka_unit_test(test_foreign_memory_counts_in_limits),
      cmocka_unit_test(test_alignment_is_kept_by_reuse),
      cmocka_unit_test(test_zeroed_memory_is_zero_also_when_reused),
      cmocka_unit_test(test_the_nth_host_allocation_fails),
      cmocka_unit_test(test_statistics_as_text_and_their_relations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
